(** * The Laplace mechanism, one number

    The noise has the density e^(-|z|/b) / (2b).  Events are intervals first, whose ends may be infinite; [Events.v]
    carries the bound to every set.

    Main theorems: [laplace_is_integral] (the distribution function is the integral of the density),
    [laplace_interval] (the upper bound), [laplace_attained]. *)

From Coquelicot Require Import Coquelicot.
From Dpassay Require Import Prelude.

Section Laplace.
Variable b : R.
Hypothesis b_gt0 : 0 < b.

Definition laplace_density (x z : R) : R := / (2 * b) * exp (- Rabs (z - x) / b).

(** The probability of an output of at most z, for the input x. *)
Definition laplace_cdf (x z : R) : R :=
  if Rle_dec z x then / 2 * exp ((z - x) / b) else 1 - / 2 * exp ((x - z) / b).

Lemma left_integral x l h : l <= x -> h <= x ->
  is_RInt (laplace_density x) l h (/ 2 * exp ((h - x) / b) - / 2 * exp ((l - x) / b)).
Proof.
  move=> lx hx.
  apply: (is_RInt_ext (fun z => / (2 * b) * exp ((z - x) / b))).
    move=> z [_ zh]; rewrite /laplace_density Rabs_left1; last by have := Rmax_lub _ _ _ lx hx; lra.
    by congr (_ * exp _); field; lra.
  apply: (is_RInt_derive (fun z => / 2 * exp ((z - x) / b))) => z _.
    by auto_derive => //; rewrite /Rdiv /Rminus; field; lra.
  apply: (ex_derive_continuous (V := R_NormedModule)).
  by auto_derive.
Qed.

Lemma right_integral x l h : x <= l -> x <= h ->
  is_RInt (laplace_density x) l h (/ 2 * exp ((x - l) / b) - / 2 * exp ((x - h) / b)).
Proof.
  move=> lx hx.
  apply: (is_RInt_ext (fun z => / (2 * b) * exp ((x - z) / b))).
    move=> z [zl _]; rewrite /laplace_density Rabs_right; last by have := Rmin_glb _ _ _ lx hx; lra.
    by congr (_ * exp _); field; lra.
  have -> : / 2 * exp ((x - l) / b) - / 2 * exp ((x - h) / b) =
            minus (- / 2 * exp ((x - h) / b)) (- / 2 * exp ((x - l) / b)).
    by rewrite /minus /plus /opp /=; ring.
  apply: (is_RInt_derive (fun z => - / 2 * exp ((x - z) / b))) => z _.
    by auto_derive => //; rewrite /Rdiv /Rminus; field; lra.
  apply: (ex_derive_continuous (V := R_NormedModule)).
  by auto_derive.
Qed.

Theorem laplace_is_integral x l h :
  is_RInt (laplace_density x) l h (laplace_cdf x h - laplace_cdf x l).
Proof.
  have one : exp ((x - x) / b) = 1 by rewrite Rminus_eq_0 /Rdiv Rmult_0_l exp_0.
  have from z : is_RInt (laplace_density x) x z (laplace_cdf x z - / 2).
    rewrite /laplace_cdf; case: Rle_dec => zx.
    - have -> : / 2 * exp ((z - x) / b) - / 2 = / 2 * exp ((z - x) / b) - / 2 * exp ((x - x) / b) by rewrite one; lra.
      by apply: left_integral; lra.
    - have -> : 1 - / 2 * exp ((x - z) / b) - / 2 = / 2 * exp ((x - x) / b) - / 2 * exp ((x - z) / b) by rewrite one; lra.
      by apply: right_integral; lra.
  have -> : laplace_cdf x h - laplace_cdf x l = plus (opp (laplace_cdf x l - / 2)) (laplace_cdf x h - / 2).
    by rewrite /plus /opp /=; ring.
  by apply: is_RInt_Chasles (from h); apply: is_RInt_swap; apply: from.
Qed.

(** The density changes by a factor of at most e^(|x-y|/b). *)
Lemma laplace_ratio x y z : laplace_density x z <= exp (Rabs (x - y) / b) * laplace_density y z.
Proof.
  rewrite /laplace_density -Rmult_assoc (Rmult_comm (exp _)) Rmult_assoc -exp_plus.
  apply: Rmult_le_compat_l; first by apply: Rlt_le; apply: Rinv_0_lt_compat; lra.
  apply: exp_le; have := Rabs_triang (z - x) (x - y); rewrite (_ : z - x + (x - y) = z - y); last ring.
  move=> tri; have : 0 < / b by apply: Rinv_0_lt_compat.
  rewrite /Rdiv; nra.
Qed.

Lemma interval_finite x y l h : l <= h ->
  laplace_cdf x h - laplace_cdf x l <= exp (Rabs (x - y) / b) * (laplace_cdf y h - laplace_cdf y l).
Proof.
  move=> lh.
  apply: (is_RInt_le (laplace_density x) (fun z => scal (exp (Rabs (x - y) / b)) (laplace_density y z)) l h) => //.
  - exact: laplace_is_integral.
  - by apply: is_RInt_scal; apply: laplace_is_integral.
  - by move=> z _; apply: laplace_ratio.
Qed.

(** ** Infinite ends *)

(** The distribution function at -infinity is 0, and at +infinity it is 1. *)
Definition cdf (x : R) (z : Rbar) : R :=
  match z with p_infty => 1 | m_infty => 0 | Finite z => laplace_cdf x z end.

Lemma tail (c : R) : is_lim (fun z => / 2 * exp ((c - z) / b)) p_infty 0.
Proof.
  have -> : Finite 0 = Rbar_mult (/ 2) 0 by rewrite /= Rmult_0_r.
  apply: is_lim_scal_l.
  apply: (is_lim_comp exp (fun z => (c - z) / b) p_infty 0 m_infty is_lim_exp_m).
  - apply: (is_lim_ext (fun z => c / b + (- / b) * z)); first by move=> z; field; lra.
    apply: (is_lim_plus _ _ _ (c / b) m_infty); [exact: is_lim_const | | by []].
    have -> : m_infty = Rbar_mult (- / b) p_infty.
      rewrite /=; case: Rle_dec => ? /=; last by [].
      by exfalso; have := Rinv_0_lt_compat b b_gt0; lra.
    by apply: is_lim_scal_l; apply: is_lim_id.
  - by exists 0 => z _ eq; discriminate eq.
Qed.

Lemma cdf_at_right x : is_lim (laplace_cdf x) p_infty 1.
Proof.
  apply: (is_lim_ext_loc (fun z => 1 - / 2 * exp ((x - z) / b))).
    by exists x => z zx; rewrite /laplace_cdf; case: Rle_dec => // ?; lra.
  have -> : Finite 1 = Finite (1 - 0) by rewrite Rminus_0_r.
  by apply: is_lim_minus'; [exact: is_lim_const | exact: tail].
Qed.

Lemma cdf_at_left x : is_lim (laplace_cdf x) m_infty 0.
Proof.
  apply: (is_lim_ext_loc (fun z => / 2 * exp ((- x - (- z)) / b))).
    exists x => z zx; rewrite /laplace_cdf; case: Rle_dec => ? /=; last by lra.
    by congr (_ * exp (_ / _)); ring.
  apply: (is_lim_comp (fun z => / 2 * exp ((- x - z) / b)) Ropp m_infty 0 p_infty (tail (- x))).
  - by have := is_lim_opp (fun z => z) m_infty m_infty (is_lim_id _).
  - by exists 0 => z _ eq; discriminate eq.
Qed.

(** The upper bound: every interval, its ends finite or not. *)
Theorem laplace_interval x y (l h : Rbar) : Rbar_le l h ->
  cdf x h - cdf x l <= exp (Rabs (x - y) / b) * (cdf y h - cdf y l).
Proof.
  set c := exp _; move=> lh.
  have c0 : 0 < c by apply: exp_pos.
  (* G is monotone where it is finite, so also in the limits. *)
  pose G z := c * laplace_cdf y z - laplace_cdf x z.
  have mono u v : u <= v -> G u <= G v by move=> uv; rewrite /G; have := interval_finite x y uv; rewrite -/c; lra.
  have right : is_lim G p_infty (c * 1 - 1).
    apply: is_lim_minus'; last exact: cdf_at_right.
    by apply: (is_lim_scal_l (laplace_cdf y) c p_infty 1); apply: cdf_at_right.
  have left : is_lim G m_infty (c * 0 - 0).
    apply: is_lim_minus'; last exact: cdf_at_left.
    by apply: (is_lim_scal_l (laplace_cdf y) c m_infty 0); apply: cdf_at_left.
  have le_right u : G u <= c * 1 - 1.
    apply: (is_lim_le_loc (fun _ => G u) G p_infty (G u) (c * 1 - 1) _ (is_lim_const _ _) right).
    by exists u => v uv; apply: mono; lra.
  have ge_left v : c * 0 - 0 <= G v.
    apply: (is_lim_le_loc G (fun _ => G v) m_infty (c * 0 - 0) (G v) _ left (is_lim_const _ _)).
    by exists v => u uv; apply: mono; lra.
  suff : (c * cdf y l - cdf x l) <= (c * cdf y h - cdf x h) by lra.
  case: l lh => [l||]; case: h => [h||] //= lh; try (by apply: Rle_refl).
  - exact: mono.
  - exact: le_right.
  - exact: ge_left.
  - by have := ge_left 0; have := le_right 0; lra.
Qed.

(** It is attained by the event "at least x", if y < x; mirrored, by "at most x" if x < y. *)
Theorem laplace_attained x y : y <= x ->
  cdf x p_infty - cdf x x = exp (Rabs (x - y) / b) * (cdf y p_infty - cdf y x).
Proof.
  move=> yx; rewrite /= /laplace_cdf; case: Rle_dec => [?|?] /=; last lra.
  rewrite Rminus_eq_0 {1}/Rdiv Rmult_0_l exp_0 Rabs_right; last lra.
  case: Rle_dec => xy /=.
    by rewrite (_ : x = y) ?Rminus_eq_0 ?/Rdiv ?Rmult_0_l ?exp_0; lra.
  rewrite (_ : 1 - (1 - / 2 * exp ((y - x) / b)) = / 2 * exp ((y - x) / b)); last ring.
  rewrite -Rmult_assoc (Rmult_comm (exp _)) Rmult_assoc -exp_plus.
  by rewrite (_ : (x - y) / b + (y - x) / b = 0) ?exp_0; [lra | field; lra].
Qed.

Theorem laplace_attained_left x y : x <= y ->
  cdf x x - cdf x m_infty = exp (Rabs (x - y) / b) * (cdf y x - cdf y m_infty).
Proof.
  move=> xy; rewrite /= /laplace_cdf; case: Rle_dec => [?|?] /=; last lra.
  case: Rle_dec => [?|?] /=; last lra.
  rewrite Rminus_eq_0 {1}/Rdiv Rmult_0_l exp_0 Rabs_left1; last lra.
  rewrite !Rminus_0_r -Rmult_assoc (Rmult_comm (exp _)) Rmult_assoc -exp_plus.
  by rewrite (_ : - (x - y) / b + (x - y) / b = 0) ?exp_0; [lra | field; lra].
Qed.

Lemma cdf_mono x (l h : Rbar) : Rbar_le l h -> 0 <= cdf x h - cdf x l.
Proof.
  move=> lh; have := laplace_interval x x lh; rewrite Rminus_eq_0 Rabs_R0 /Rdiv Rmult_0_l exp_0.
  case: l lh => [l||]; case: h => [h||] //= lh _; try lra.
  - apply: (is_RInt_ge_0 (laplace_density x) l h) => //; first exact: laplace_is_integral.
    by move=> z _; apply: Rmult_le_pos; apply: Rlt_le; [apply: Rinv_0_lt_compat; lra | apply: exp_pos].
  - rewrite /laplace_cdf; case: Rle_dec => ? /=; last by have := exp_pos ((x - l) / b); lra.
    have : exp ((l - x) / b) <= 1; last lra.
    rewrite -exp_0; apply: exp_le; rewrite /Rdiv; have := Rinv_0_lt_compat b b_gt0; nra.
  - rewrite /laplace_cdf; case: Rle_dec => ? /=; first by have := exp_pos ((h - x) / b); lra.
    have : exp ((x - h) / b) <= 1; last lra.
    rewrite -exp_0; apply: exp_le; rewrite /Rdiv; have := Rinv_0_lt_compat b b_gt0; nra.
Qed.
End Laplace.
