(** * The Laplace mechanism, vectors

    Independent Laplace noise of scale [b] is added to every coordinate; the coordinates are the elements of a finite
    type [I], for example ['I_n] in n dimensions.

    [laplace_private b eps near] is eps-DP for the neighbours [near]: every box (a product of intervals) has at most e^eps
    times the probability.  [laplace_every_event] carries that to every set of outputs.

    Main theorems: [laplace_vector] (the upper bound), [laplace_vector_attained], [laplace_exact] (eps-DP holds if and
    only if no two neighbours are more than eps b apart in l1), [laplace_every_event], [rounded_same] (the same for outputs
    that are rounded), [dropped_upper] and [dropped_lower] (after word dropout). *)

From Coquelicot Require Import Coquelicot.
From Dpassay Require Import Prelude Laplace Events Sampling.

Lemma sum_const_all (I : finType) (c : R) : \big[Rplus/0]_(i : I) c = INR #|I| * c.
Proof.
  rewrite big_const; elim: #|_| => [|k IH]; first by rewrite /= Rmult_0_l.
  by rewrite iterS IH S_INR; lra.
Qed.

Section Vector.
Variable I : finType.
Variable b : R.
Hypothesis b_gt0 : 0 < b.

Definition vector := I -> R.
Definition l1 (x y : vector) : R := \sum_i Rabs (x i - y i).

(** A box: in each coordinate the outputs above the first and up to the second end.  It is empty if they cross. *)
Definition box := I -> Rbar * Rbar.
Definition inside (B : box) (v : vector) : Prop := forall i, Rbar_lt (B i).1 (v i) /\ Rbar_le (v i) (B i).2.

Definition side (x : R) (ends : Rbar * Rbar) : R :=
  if Rbar_le_dec ends.1 ends.2 then cdf b x ends.2 - cdf b x ends.1 else 0.

(** The probability of a box, for the vector x before the noise: coordinates are independent. *)
Definition prob (x : vector) (B : box) : R := \prod_i side (x i) (B i).

Definition laplace_private (eps : R) (near : vector -> vector -> Prop) : Prop :=
  forall x y, near x y -> forall B : box, prob x B <= exp eps * prob y B.

Lemma side_ge0 x e : 0 <= side x e.
Proof. by rewrite /side; case: Rbar_le_dec => ? /=; [apply: cdf_mono | lra]. Qed.

Lemma prob_ge0 x B : 0 <= prob x B.
Proof. by apply: prod_ge0 => i; apply: side_ge0. Qed.

Lemma l1_over_b x y : \sum_i (Rabs (x i - y i) / b) = l1 x y / b.
Proof. by rewrite /l1 /Rdiv Rmult_comm -sum_const_mult; apply: eq_bigr => i _; ring. Qed.

Theorem laplace_vector x y B : prob x B <= exp (l1 x y / b) * prob y B.
Proof.
  rewrite -l1_over_b -exp_sum /prob -big_split; apply: prod_le => i; split; first exact: side_ge0.
  rewrite /side /=; case: Rbar_le_dec => le /=; last lra.
  exact: laplace_interval.
Qed.

(** The worst event: each coordinate at or beyond that of x, on the side away from y. *)
Definition worst (x y : vector) : box :=
  fun i => if Rle_dec (y i) (x i) then (Finite (x i), p_infty) else (m_infty, Finite (x i)).

Lemma worst_side x y i : side (x i) (worst x y i) = exp (Rabs (x i - y i) / b) * side (y i) (worst x y i).
Proof.
  rewrite /side /worst; case: Rle_dec => le /=; case: Rbar_le_dec => //= _.
  - exact: laplace_attained.
  - by apply: laplace_attained_left; lra.
Qed.

Lemma worst_gt0 x y : 0 < prob x (worst x y).
Proof.
  apply: prod_gt0 => i; rewrite /side /worst; case: Rle_dec => ? /=; case: Rbar_le_dec => //= _;
    rewrite /laplace_cdf; case: Rle_dec => ? /=; try lra;
    rewrite Rminus_eq_0 /Rdiv Rmult_0_l exp_0; lra.
Qed.

Theorem laplace_vector_attained x y : prob x (worst x y) = exp (l1 x y / b) * prob y (worst x y).
Proof. by rewrite -l1_over_b -exp_sum /prob -big_split; apply: eq_bigr => i _; apply: worst_side. Qed.

Lemma worst_gt0' x y : 0 < prob y (worst x y).
Proof. by have := worst_gt0 x y; rewrite laplace_vector_attained; have := exp_pos (l1 x y / b); nra. Qed.

Theorem laplace_exact eps near :
  laplace_private eps near <-> forall x y, near x y -> l1 x y / b <= eps.
Proof.
  split=> [priv x y near_xy | le x y near_xy B].
  - apply: exp_le_inv; apply: (Rmult_le_reg_r _ _ _ (worst_gt0' x y)).
    by rewrite -laplace_vector_attained; apply: priv.
  - apply: Rle_trans (laplace_vector x y B) _; apply: Rmult_le_compat_r; first exact: prob_ge0.
    by apply: exp_le; apply: le.
Qed.

(** Not only boxes: every set of outputs, measurable or not. *)
Theorem laplace_every_event eps near : laplace_private eps near ->
  forall x y, near x y -> forall A : vector -> Prop,
  Rbar_le (measure inside (prob x) A) (Rbar_mult (exp eps) (measure inside (prob y) A)).
Proof.
  by move=> priv x y near_xy; apply: every_event; [exact: prob_ge0 | exact: exp_pos | exact: priv].
Qed.

(** ** Outputs that are rounded to whole numbers *)

(** The output z is rounded to r; at a tie, which has probability 0, down. *)
Definition rounds (z : R) (r : Z) : Prop := IZR r - / 2 < z <= IZR r + / 2.

(** An event of rounded outputs, coordinate by coordinate: above one whole number and up to another, or without an end. *)
Definition whole_ends := (option Z * option Z)%type.
Definition halves (e : whole_ends) : Rbar * Rbar :=
  (if e.1 is Some k then Finite (IZR k + / 2) else m_infty, if e.2 is Some m then Finite (IZR m + / 2) else p_infty).

Lemma halves_event z r (e : whole_ends) : rounds z r ->
  (Rbar_lt (halves e).1 z /\ Rbar_le z (halves e).2 <->
   (if e.1 is Some k then (k < r)%Z else True) /\ (if e.2 is Some m then (r <= m)%Z else True)).
Proof.
  have gt k : rounds z r -> (IZR k + / 2 < z <-> (k < r)%Z).
    move=> [lo hi]; split=> [lt | /Zlt_le_succ /IZR_le]; last by rewrite succ_IZR; lra.
    by apply/Z.lt_nge => /IZR_le; lra.
  have le m : rounds z r -> (z <= IZR m + / 2 <-> (r <= m)%Z).
    move=> [lo hi]; split=> [le | /IZR_le]; last lra.
    by apply/Z.le_ngt => /Zlt_le_succ /IZR_le; rewrite succ_IZR; lra.
  move=> rz; case: e => [[k|] [m|]] /=; rewrite ?(gt _ rz) ?(le _ rz); tauto.
Qed.

Definition rounded_private (eps : R) (near : vector -> vector -> Prop) : Prop :=
  forall x y, near x y -> forall B : I -> whole_ends,
  prob x (fun i => halves (B i)) <= exp eps * prob y (fun i => halves (B i)).

(** Far out, where both inputs lie on one side, rounding hides nothing. *)
Lemma rounded_side x y : exists e, side x (halves e) = exp (Rabs (x - y) / b) * side y (halves e) /\ 0 < side y (halves e).
Proof.
  have [yx | xy] : y <= x \/ x <= y by lra.
  - have [up_x _] := archimed x; set k := up x in up_x.
    have tail z : z <= x -> side z (halves (Some k, None)) = / 2 * exp ((z - (IZR k + / 2)) / b).
      move=> zx; rewrite /side /=; case: Rbar_le_dec => //= _; rewrite /laplace_cdf; case: Rle_dec => ? /=; lra.
    exists (Some k, None); rewrite !tail; try lra; split; last by have := exp_pos ((y - (IZR k + / 2)) / b); lra.
    rewrite Rabs_right; last lra.
    rewrite -Rmult_assoc (Rmult_comm (exp _)) Rmult_assoc -exp_plus; congr (_ * exp _); field; lra.
  - have [up_x _] := archimed (- x); set k := (- up (- x) - 1)%Z.
    have kx : IZR k + / 2 <= x by rewrite /k minus_IZR opp_IZR; lra.
    have tail z : x <= z -> side z (halves (None, Some k)) = / 2 * exp ((IZR k + / 2 - z) / b).
      move=> zx; rewrite /side /=; case: Rbar_le_dec => //= _; rewrite /laplace_cdf; case: Rle_dec => ? /=; lra.
    exists (None, Some k); rewrite !tail; try lra; split; last by have := exp_pos ((IZR k + / 2 - y) / b); lra.
    rewrite Rabs_left1; last lra.
    rewrite -Rmult_assoc (Rmult_comm (exp _)) Rmult_assoc -exp_plus; congr (_ * exp _); field; lra.
Qed.

(** So rounding changes nothing: the exact eps is that of the noise. *)
Theorem rounded_same eps near : rounded_private eps near <-> laplace_private eps near.
Proof.
  split=> [priv | priv x y near_xy B]; last exact: priv.
  apply/laplace_exact => x y near_xy.
  have [e both_] := fin_all_exists (fun i => rounded_side (x i) (y i)).
  have gt0 : 0 < prob y (fun i => halves (e i)) by apply: prod_gt0 => i; apply: (both_ i).2.
  apply: exp_le_inv; apply: (Rmult_le_reg_r _ _ _ gt0); apply: Rle_trans (priv x y near_xy e).
  apply: Req_le; rewrite -l1_over_b -exp_sum /prob -big_split; apply: eq_bigr => i _.
  exact: esym (both_ i).1.
Qed.

(** ** Word dropout before the noise *)

(** With probability q the word is there, and the vectors are x and y; otherwise both are r. *)
Definition dropped_private (q eps : R) (region : vector -> Prop) : Prop :=
  forall x y r, region x -> region y -> region r -> forall B : box,
  (1 - q) * prob r B + q * prob x B <= exp eps * ((1 - q) * prob r B + q * prob y B).

Theorem dropped_upper q e (region : vector -> Prop) : 0 <= q <= 1 -> 0 <= e ->
  (forall x y, region x -> region y -> l1 x y / b <= e) -> dropped_private q (amplified q e) region.
Proof.
  move=> q01 e0 le x y r rx ry rr B; rewrite exp_amplified // -(Rplus_0_r (_ * (_ + _))) -(Rmult_0_r q).
  have two u v : region u -> region v -> prob u B <= exp e * prob v B + 0.
    move=> ru rv; rewrite Rplus_0_r; apply: Rle_trans (laplace_vector u v B) _.
    by apply: Rmult_le_compat_r; [apply: prob_ge0 | apply: exp_le; apply: le].
  by apply: amplify_replaced => //; [rewrite -exp_0; apply: exp_le | apply: two | apply: two].
Qed.

Theorem dropped_lower q e eps (region : vector -> Prop) x y : 0 <= q <= 1 -> region x -> region y ->
  e <= l1 x y / b -> dropped_private q eps region -> amplified q e <= eps.
Proof.
  move=> q01 rx ry le priv; have := priv x y y rx ry ry (worst x y).
  rewrite laplace_vector_attained; have w0 := worst_gt0' x y; move=> bound.
  rewrite /amplified; apply/ln_le_exp; first by have := exp_pos e; nra.
  apply: (Rmult_le_reg_r _ _ _ w0).
  have qw : 0 <= q * prob y (worst x y) by apply: Rmult_le_pos; lra.
  have := Rmult_le_compat_l _ _ _ qw (exp_le le); nra.
Qed.
End Vector.
