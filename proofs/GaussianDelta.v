(** * (eps, delta)-DP of Gaussian noise on one number

    Two inputs D apart are the worst, and outputs beyond t = sigma^2 eps / D + D / 2 are the ones that count.  If no
    interval that begins at t shows more than delta, nothing does.

    Main theorems: [gaussian_upper], [gaussian_exact], [gaussian_proven] (with numbers: two integrals and a bound on the tail),
    [gaussian_near] and [gaussian_far] (inputs that are very close together, or very far apart). *)

From Coquelicot Require Import Coquelicot.
From Dpassay Require Import Prelude Gaussian.

Section Delta.
Variables sigma eps : R.
Hypothesis sigma_gt0 : 0 < sigma.
Notation f := (gaussian_density sigma).

(** Where the loss of d against 0 is eps. *)
Definition threshold (d : R) : R := sigma * sigma * eps / d + d / 2.

Lemma two_s2 : 0 < 2 * sigma * sigma.
Proof. by repeat apply: Rmult_lt_0_compat; lra. Qed.

Lemma loss_at d z : 0 < d -> d * (2 * z - d) / (2 * sigma * sigma) - eps = d * (z - threshold d) / (sigma * sigma).
Proof. by move=> d0; rewrite /threshold; field; lra. Qed.

Lemma below d z : 0 < d -> z <= threshold d -> f d z <= exp eps * f 0 z.
Proof.
  move=> d0 zt; rewrite (gaussian_loss sigma_gt0 d 0); apply: Rmult_le_compat_r.
    by apply: Rlt_le; apply: density_gt0.
  apply: exp_le; have := loss_at z d0; rewrite Rminus_0_r Rminus_0_r.
  have i0 : 0 < / (sigma * sigma) by apply: Rinv_0_lt_compat; nra.
  have : d * (z - threshold d) / (sigma * sigma) <= 0 by rewrite /Rdiv; have : d * (z - threshold d) <= 0; nra.
  lra.
Qed.

Lemma above d z : 0 < d -> threshold d <= z -> exp eps * f 0 z <= f d z.
Proof.
  move=> d0 zt; rewrite (gaussian_loss sigma_gt0 d 0); apply: Rmult_le_compat_r.
    by apply: Rlt_le; apply: density_gt0.
  apply: exp_le; have := loss_at z d0; rewrite Rminus_0_r Rminus_0_r.
  have i0 : 0 < / (sigma * sigma) by apply: Rinv_0_lt_compat; nra.
  have : 0 <= d * (z - threshold d) / (sigma * sigma) by rewrite /Rdiv; have : 0 <= d * (z - threshold d); nra.
  lra.
Qed.

(** What an output adds to P - e^eps Q. *)
Definition gain (d z : R) : R := f d z - exp eps * f 0 z.

Lemma gain_integrable d l h : ex_RInt (gain d) l h.
Proof.
  apply: (ex_RInt_minus (V := R_NormedModule)); first exact: density_integrable.
  by apply: (ex_RInt_scal (V := R_NormedModule)); apply: density_integrable.
Qed.

Lemma gain_split d l h : RInt (gain d) l h = RInt (f d) l h - exp eps * RInt (f 0) l h.
Proof.
  have ex : ex_RInt (fun z => exp eps * f 0 z) l h.
    by apply: (ex_RInt_scal (V := R_NormedModule)); apply: density_integrable.
  have := RInt_minus (V := R_CompleteNormedModule) _ _ l h (@density_integrable sigma d l h) ex.
  have := RInt_scal (V := R_CompleteNormedModule) _ l h (exp eps) (@density_integrable sigma 0 l h).
  by rewrite /minus /plus /opp /scal /= /mult /= => -> ->.
Qed.

Lemma gain_ge0 d l h : 0 < d -> threshold d <= l -> l <= h -> 0 <= RInt (gain d) l h.
Proof.
  move=> d0 tl lh; apply: RInt_ge_0 => //; first exact: gain_integrable.
  by move=> z zlh; have := above d0 (z := z); rewrite /gain; lra.
Qed.

(** A test gains at most what all outputs beyond the threshold do. *)
Lemma test_gain d (w : R -> R) l h : 0 < d -> l <= h -> (forall z, 0 <= w z <= 1) ->
  ex_RInt (fun z => w z * gain d z) l h ->
  RInt (fun z => w z * gain d z) l h <= RInt (gain d) (threshold d) (Rmax (threshold d) h).
Proof.
  set t := threshold d; move=> d0 lh w01 ex.
  have low a b : a <= b -> b <= t -> ex_RInt (fun z => w z * gain d z) a b -> RInt (fun z => w z * gain d z) a b <= 0.
    move=> ab bt ex'; have <- : RInt (fun _ => 0) a b = 0 by rewrite RInt_const /scal /= /mult /=; ring.
    apply: RInt_le => //; first exact: ex_RInt_const.
    move=> z zab; have := below d0 (z := z); rewrite /gain; have := w01 z; have : z <= threshold d by rewrite -/t; lra.
    move=> zt wz /(_ zt); nra.
  have high a b : a <= b -> t <= a -> ex_RInt (fun z => w z * gain d z) a b ->
      RInt (fun z => w z * gain d z) a b <= RInt (gain d) a b.
    move=> ab ta ex'; apply: RInt_le => //; first exact: gain_integrable.
    move=> z zab; have := above d0 (z := z); rewrite /gain; have := w01 z; have : threshold d <= z by rewrite -/t; lra.
    move=> zt wz /(_ zt); nra.
  case: (Rle_dec h t) => ht.
    by rewrite Rmax_left // RInt_point; apply: low.
  rewrite Rmax_right; last lra.
  case: (Rle_dec t l) => tl.
    apply: Rle_trans (high l h lh tl ex) _.
    rewrite -(RInt_Chasles (V := R_CompleteNormedModule) (gain d) t l h); try exact: gain_integrable.
    by have := @gain_ge0 d t l d0 (Rle_refl _) tl; rewrite /plus /=; lra.
  have lt : l <= t <= h by lra.
  have ex1 := ex_RInt_Chasles_1 (V := R_CompleteNormedModule) _ _ _ _ lt ex.
  have ex2 := ex_RInt_Chasles_2 (V := R_CompleteNormedModule) _ _ _ _ lt ex.
  rewrite -(RInt_Chasles (V := R_CompleteNormedModule) _ l t h) //.
  have := low l t ltac:(lra) (Rle_refl t) ex1; have := high t h ltac:(lra) (Rle_refl t) ex2.
  by rewrite /plus /=; lra.
Qed.

Lemma shifted d D l h : RInt (f d) l h = RInt (f D) (l + (D - d)) (h + (D - d)).
Proof.
  have := RInt_comp_lin (V := R_CompleteNormedModule) (f D) 1 (D - d) l h (@density_integrable sigma D _ _).
  rewrite !Rmult_1_l => <-; apply: RInt_ext => z _.
  rewrite /scal /= /mult /= !Rmult_1_l /gaussian_density.
  by congr (_ * exp _); field; lra.
Qed.

(** The density falls to 0. *)
Lemma density_small (eta H : R) : 0 < eta -> exists K, H <= K /\ 0 <= K /\ forall z, K <= z -> f 0 z <= eta.
Proof.
  move=> eta0; set c := / (sigma * sqrt (2 * PI)).
  have c0 : 0 < c.
    apply: Rinv_0_lt_compat; apply: Rmult_lt_0_compat => //; apply: sqrt_lt_R0.
    by have := PI_RGT_0; lra.
  have s2 := two_s2.
  pose K := Rmax (Rmax H 1) (2 * sigma * sigma * (c / eta)).
  have K1 : 1 <= K by apply: Rle_trans (Rmax_l _ _); apply: Rmax_r.
  have KH : H <= K by apply: Rle_trans (Rmax_l _ _); apply: Rmax_l.
  have Kc : 2 * sigma * sigma * (c / eta) <= K by apply: Rmax_r.
  exists K; split=> //; split; first lra.
  move=> z Kz; rewrite /gaussian_density -/c Rminus_0_r.
  have -> : - (z * z) / (2 * sigma * sigma) = - (z * z / (2 * sigma * sigma)) by field; lra.
  set u := z * z / (2 * sigma * sigma); rewrite exp_Ropp.
  have ueta : c <= eta * u.
    have : 2 * sigma * sigma * (c / eta) <= z * z by nra.
    move=> le; have i0 := Rinv_0_lt_compat _ s2.
    have := Rmult_le_compat_l (eta * / (2 * sigma * sigma)) _ _ ltac:(nra) le.
    have -> : eta * / (2 * sigma * sigma) * (2 * sigma * sigma * (c / eta)) = c by field; lra.
    by rewrite /u /Rdiv; lra.
  have u0 : 0 < u by rewrite /u; apply: Rdiv_lt_0_compat => //; nra.
  have := exp_ineq1_le u; have e0 := exp_pos u => ineq.
  apply: (Rmult_le_reg_r (exp u)) => //; rewrite Rmult_assoc Rinv_l; nra.
Qed.

Lemma density_tail K s : 0 <= s -> (forall z, K <= z -> f 0 z <= s) -> forall h, K <= h -> RInt (f 0) K h <= (h - K) * s.
Proof.
  move=> s0 le h Kh; have -> : (h - K) * s = RInt (fun _ => s) K h by rewrite RInt_const.
  apply: RInt_le => //; [exact: density_integrable | exact: ex_RInt_const |].
  by move=> z zKh; apply: le; lra.
Qed.

(** Inputs that are closer gain no more. *)
Lemma closer delta d D H : 0 < d <= D ->
  (forall H, threshold D <= H -> RInt (gain D) (threshold D) H <= delta) ->
  threshold d <= H -> RInt (gain d) (threshold d) H <= delta.
Proof.
  move=> dD limit tH; apply: Rnot_lt_le => more.
  have eta0 : 0 < RInt (gain d) (threshold d) H - delta by lra.
  have e0 := exp_pos eps; set s := D - d; have s0 : 0 <= s by rewrite /s; lra.
  pose small := (RInt (gain d) (threshold d) H - delta) / (2 * exp eps * (s + 1)).
  have small0 : 0 < small by apply: Rdiv_lt_0_compat => //; nra.
  have [K [HK [K0 le]]] := density_small H small0.
  have grows : RInt (gain d) (threshold d) H <= RInt (gain d) (threshold d) K.
    rewrite -(RInt_Chasles (V := R_CompleteNormedModule) (gain d) (threshold d) H K); try exact: gain_integrable.
    by have := @gain_ge0 d H K dD.1 tH HK; rewrite /plus /=; lra.
  have far : RInt (gain d) (threshold d) K <= RInt (gain D) (threshold d) (K + s) + exp eps * RInt (f 0) K (K + s).
    rewrite !gain_split (shifted d D (threshold d) K) -/s.
    have more_f : RInt (f D) (threshold d + s) (K + s) <= RInt (f D) (threshold d) (K + s).
      rewrite -(RInt_Chasles (V := R_CompleteNormedModule) (f D) (threshold d) (threshold d + s) (K + s));
        try exact: density_integrable.
      have : 0 <= RInt (f D) (threshold d) (threshold d + s).
        apply: RInt_ge_0; [lra | exact: density_integrable | by move=> z _; apply: Rlt_le; apply: density_gt0].
      by rewrite /plus /=; lra.
    have := RInt_Chasles (V := R_CompleteNormedModule) (f 0) (threshold d) K (K + s)
      (@density_integrable sigma 0 _ _) (@density_integrable sigma 0 _ _).
    by rewrite /plus /=; nra.
  have D0 : 0 < D by lra.
  have one (z : R) : 0 <= 1 <= 1 by lra.
  have ones : forall z, 1 * gain D z = gain D z by move=> z; rewrite Rmult_1_l.
  have tK : threshold d <= K + s by lra.
  have := @test_gain D (fun _ => 1) (threshold d) (K + s) D0 tK one.
  have -> : RInt (fun z => 1 * gain D z) (threshold d) (K + s) = RInt (gain D) (threshold d) (K + s).
    by apply: RInt_ext => z _; apply: Rmult_1_l.
  have ex : ex_RInt (fun z => 1 * gain D z) (threshold d) (K + s).
    by apply: (ex_RInt_ext (gain D)) => [z _|]; [rewrite ones | apply: gain_integrable].
  move=> /(_ ex) crossed.
  have := limit _ (Rmax_l (threshold D) (K + s)).
  have := @density_tail K small (Rlt_le _ _ small0) le (K + s) ltac:(lra).
  have -> : (K + s - K) * small = s * small by ring.
  have : exp eps * (s * small) <= (RInt (gain d) (threshold d) H - delta) / 2.
    have -> : exp eps * (s * small) = (RInt (gain d) (threshold d) H - delta) / 2 * (s / (s + 1)).
      by rewrite /small; field; lra.
    have : s / (s + 1) <= 1 by apply: (Rmult_le_reg_r (s + 1)); [lra | rewrite /Rdiv Rmult_assoc Rinv_l; lra].
    nra.
  nra.
Qed.

(** A pair, moved and perhaps mirrored so that the second input is 0. *)
Lemma moved (w : R -> R) x y u : u = 1 \/ u = -1 -> (x - y) * u = Rabs (x - y) -> forall l h,
  ex_RInt (fun z => w z * f x z) l h -> ex_RInt (fun z => w z * f y z) l h -> l <= h ->
  exists l' h' (v : R -> R), l' <= h' /\ v = (fun s => w (u * s + y)) /\
  is_RInt (fun s => v s * f (Rabs (x - y)) s) l' h' (RInt (fun z => w z * f x z) l h) /\
  is_RInt (fun s => v s * f 0 s) l' h' (RInt (fun z => w z * f y z) l h).
Proof.
  move=> u1 ux l h ex ey lh; pose a := u * (l - y); pose c := u * (h - y).
  have uu : u * u = 1 by case: u1 => ->; ring.
  have ua : u * a + y = l by rewrite /a -Rmult_assoc uu; ring.
  have uc : u * c + y = h by rewrite /c -Rmult_assoc uu; ring.
  have dens x' s : (x' - y) * u = Rabs (x' - y) -> f x' (u * s + y) = f (Rabs (x' - y)) s.
    move=> ux'; rewrite /gaussian_density; congr (_ * exp (_ / _)); congr (- _); rewrite -ux'.
    have -> : (u * s + y - x') * (u * s + y - x') = u * u * s * s - 2 * s * ((x' - y) * u) + (x' - y) * (x' - y) by ring.
    have -> : (s - (x' - y) * u) * (s - (x' - y) * u) = s * s - 2 * s * ((x' - y) * u) + (x' - y) * (x' - y) * (u * u).
      by ring.
    by rewrite uu; ring.
  have zero : (y - y) * u = Rabs (y - y) by rewrite Rminus_eq_0 Rabs_R0; ring.
  have part x' : (x' - y) * u = Rabs (x' - y) -> ex_RInt (fun z => w z * f x' z) l h ->
      is_RInt (fun s => u * (w (u * s + y) * f (Rabs (x' - y)) s)) a c (RInt (fun z => w z * f x' z) l h).
    move=> ux' ex'.
    apply: (is_RInt_ext (fun s => scal u ((fun z => w z * f x' z) (u * s + y)))).
      by move=> s _; rewrite /scal /= /mult /= dens.
    apply: (is_RInt_comp_lin (V := R_NormedModule) (fun z => w z * f x' z) u y a c).
    by rewrite ua uc; apply: RInt_correct.
  have := part y zero ey; have := part x ux ex; rewrite (_ : Rabs (y - y) = 0); last by rewrite Rminus_eq_0 Rabs_R0.
  case: u1 => u_is px py.
  - exists a, c, (fun s => w (u * s + y)); split; first by rewrite /a /c u_is; lra.
    split=> //; split.
    + by apply: is_RInt_ext px => s _; rewrite u_is Rmult_1_l.
    + by apply: is_RInt_ext py => s _; rewrite u_is Rmult_1_l.
  - exists c, a, (fun s => w (u * s + y)); split; first by rewrite /a /c u_is; lra.
    have back g v : is_RInt (fun s => u * g s) a c v -> is_RInt g c a v.
      move=> /(is_RInt_swap (V := R_NormedModule)) /(is_RInt_opp (V := R_NormedModule)).
      rewrite (_ : opp (opp v) = v); last by rewrite /opp /=; ring.
      by apply: is_RInt_ext => s _; rewrite /opp /= u_is; ring.
    by split=> //; split; apply: back.
Qed.

(** The upper bound: intervals that begin at the threshold of D decide. *)
Theorem gaussian_upper delta D : 0 < D -> 0 <= eps ->
  (forall H, threshold D <= H -> RInt (gain D) (threshold D) H <= delta) -> gaussian_private sigma eps delta D.
Proof.
  move=> D0 eps0 limit x y near w l h lh w01 ex ey.
  have delta0 : 0 <= delta by have := limit _ (Rle_refl _); rewrite RInt_point.
  pose u := if Rle_dec y x then 1 else -1.
  have u1 : u = 1 \/ u = -1 by rewrite /u; case: Rle_dec => ?; [left | right].
  have ux : (x - y) * u = Rabs (x - y).
    by rewrite /u; case: Rle_dec => ? /=; [rewrite Rabs_right; lra | rewrite Rabs_left; lra].
  have [l' [h' [v [lh' [v_is [ix iy]]]]]] := moved u1 ux ex ey lh.
  have v01 s : 0 <= v s <= 1 by rewrite v_is; apply: w01.
  set d := Rabs (x - y) in near ix *.
  have ig : is_RInt (fun s => v s * gain d s) l' h'
              (RInt (fun z => w z * f x z) l h - exp eps * RInt (fun z => w z * f y z) l h).
    have := is_RInt_minus (V := R_NormedModule) _ _ _ _ _ _ ix (is_RInt_scal (V := R_NormedModule) _ _ _ (exp eps) _ iy).
    apply: is_RInt_ext => s _; rewrite /gain /minus /plus /opp /scal /= /mult /=; ring.
  suff : RInt (fun s => v s * gain d s) l' h' <= delta by rewrite (is_RInt_unique _ _ _ _ ig); lra.
  case: (Req_dec d 0) => d_is.
  - apply: (Rle_trans _ 0) => //; have <- : RInt (fun _ => 0) l' h' = 0 by rewrite RInt_const /scal /= /mult /=; ring.
    apply: RInt_le => //; [by exists (RInt (fun z => w z * f x z) l h - exp eps * RInt (fun z => w z * f y z) l h)
      | exact: ex_RInt_const |].
    move=> s _; rewrite /gain d_is; have := v01 s; have := density_gt0 sigma_gt0 0 s.
    have e1 : 1 <= exp eps by rewrite -exp_0; apply: exp_le.
    move=> f0 vs; have : 0 <= v s * (f 0 s * (exp eps - 1)).
      by apply: Rmult_le_pos; [lra | apply: Rmult_le_pos; lra].
    lra.
  - have d0 : 0 < d by have := Rabs_pos (x - y); rewrite -/d; lra.
    apply: Rle_trans (test_gain d0 lh' v01 _) _; first by eexists; exact: ig.
    by apply: (@closer delta d D); [lra | exact: limit | exact: Rmax_l].
Qed.

(** It is exact: (eps, delta)-DP holds if and only if no such interval shows more than delta. *)
Theorem gaussian_exact delta D : 0 < D -> 0 <= eps ->
  (gaussian_private sigma eps delta D <->
   forall H, threshold D <= H -> RInt (f D) (threshold D) H - exp eps * RInt (f 0) (threshold D) H <= delta).
Proof.
  move=> D0 eps0; split=> [priv H tH | limit]; last first.
    by apply: gaussian_upper => // H tH; rewrite gain_split; apply: limit.
  apply: Rnot_lt_le => more.
  by apply: (@gaussian_refuted sigma eps delta D (threshold D) H _ _ sigma_gt0 _ tH (Rle_refl _) (Rle_refl _) _ priv); lra.
Qed.

(** ** With numbers *)

(** Outputs beyond T. *)
Lemma tail_bound D T H : D < T -> T <= H ->
  RInt (f D) T H <= 2 * sigma * sigma / (T - D) * f D T.
Proof.
  move=> DT TH; pose k := (T - D) / (2 * sigma * sigma); have s2 := two_s2.
  have k0 : 0 < k by apply: Rdiv_lt_0_compat; lra.
  set c := / (sigma * sqrt (2 * PI)).
  have c0 : 0 < c.
    apply: Rinv_0_lt_compat; apply: Rmult_lt_0_compat => //; apply: sqrt_lt_R0.
    by have := PI_RGT_0; lra.
  have area : is_RInt (fun z => c * exp (- k * (z - D))) T H (c / k * exp (- k * (T - D)) - c / k * exp (- k * (H - D))).
    have -> : c / k * exp (- k * (T - D)) - c / k * exp (- k * (H - D)) =
              minus (- (c / k) * exp (- k * (H - D))) (- (c / k) * exp (- k * (T - D))).
      by rewrite /minus /plus /opp /=; ring.
    apply: (is_RInt_derive (fun z => - (c / k) * exp (- k * (z - D)))) => z _.
      by auto_derive => //; rewrite /Rminus; field; lra.
    by apply: (ex_derive_continuous (V := R_NormedModule)); auto_derive.
  apply: (Rle_trans _ (c / k * exp (- k * (T - D)) - c / k * exp (- k * (H - D)))).
    rewrite -(is_RInt_unique _ _ _ _ area); apply: RInt_le => //; first exact: density_integrable.
      by eexists; exact: area.
    move=> z zTH; rewrite /gaussian_density -/c; apply: Rmult_le_compat_l; first lra.
    apply: exp_le; rewrite /k.
    have -> : - ((T - D) / (2 * sigma * sigma)) * (z - D) = - ((T - D) * (z - D)) / (2 * sigma * sigma) by field; lra.
    by rewrite /Rdiv; have i0 := Rinv_0_lt_compat _ s2; apply: Rmult_le_compat_r; nra.
  have -> : 2 * sigma * sigma / (T - D) * f D T = c / k * exp (- k * (T - D)).
    rewrite /gaussian_density -/c /k.
    have -> : - ((T - D) / (2 * sigma * sigma)) * (T - D) = - ((T - D) * (T - D)) / (2 * sigma * sigma) by field; lra.
    by field; lra.
  have : 0 < c / k * exp (- k * (H - D)) by apply: Rmult_lt_0_compat; [apply: Rdiv_lt_0_compat | apply: exp_pos].
  lra.
Qed.

(** Integrals from any a up to T: [p] is at least that of D, [q] at most that of 0, [r] at least what lies beyond T. *)
Theorem gaussian_proven delta D T p q r : 0 < D -> 0 <= eps -> D < T -> threshold D <= T ->
  RInt (f D) (threshold D) T <= p -> q <= RInt (f 0) (threshold D) T ->
  2 * sigma * sigma / (T - D) * f D T <= r -> p - exp eps * q + r <= delta -> gaussian_private sigma eps delta D.
Proof.
  move=> D0 eps0 DT tT le_p q_le le_r sum; apply: gaussian_upper => // H tH.
  have e0 := exp_pos eps; set t := threshold D in tT tH le_p q_le *.
  apply: (Rle_trans _ (RInt (gain D) t (Rmax T H))).
    rewrite -(RInt_Chasles (V := R_CompleteNormedModule) (gain D) t H (Rmax T H)); try exact: gain_integrable.
    by have := @gain_ge0 D H (Rmax T H) D0 tH (Rmax_r _ _); rewrite /plus /=; lra.
  have TM := Rmax_l T H; set M := Rmax T H in TM *.
  rewrite gain_split.
  have cD := RInt_Chasles (V := R_CompleteNormedModule) (f D) t T M (@density_integrable sigma D _ _) (@density_integrable sigma D _ _).
  have c0 := RInt_Chasles (V := R_CompleteNormedModule) (f 0) t T M (@density_integrable sigma 0 _ _) (@density_integrable sigma 0 _ _).
  have tail0 : 0 <= RInt (f 0) T M.
    by apply: RInt_ge_0 => //; [exact: density_integrable | move=> z _; apply: Rlt_le; apply: density_gt0].
  have tailD := tail_bound DT TM.
  rewrite -cD -c0 /plus /=; nra.
Qed.

(** Inputs very close together, or a large eps: outputs beyond the threshold are so rare that no integral is needed. *)
Theorem gaussian_near delta D B : 0 < D -> 0 <= eps -> D < threshold D ->
  B <= (threshold D - D) * (threshold D - D) / (2 * sigma * sigma) ->
  2 * sigma * sigma / (threshold D - D) * (/ (sigma * sqrt (2 * PI)) * exp (- B)) <= delta ->
  gaussian_private sigma eps delta D.
Proof.
  move=> D0 e0 far le_B le; have s2 := two_s2; have c0 : 0 < / (sigma * sqrt (2 * PI)).
    apply: Rinv_0_lt_compat; apply: Rmult_lt_0_compat => //; apply: sqrt_lt_R0; have := PI_RGT_0; lra.
  apply: (@gaussian_proven delta D (threshold D) 0 0 delta) => //; rewrite ?RInt_point /zero /=; try lra.
  apply: Rle_trans le; apply: Rmult_le_compat_l.
    by apply: Rlt_le; apply: Rdiv_lt_0_compat; lra.
  rewrite /gaussian_density; apply: Rmult_le_compat_l; first lra.
  by apply: exp_le; rewrite /Rdiv Ropp_mult_distr_l_reverse; move: le_B; rewrite /Rdiv; lra.
Qed.

(** Inputs very far apart: nearly all outputs of D are closer than K to it, and 0 gives so few of them that no integral of
    them is needed. *)
Theorem gaussian_far delta D K B p : 0 < K -> K <= D -> B <= (D - K) * (D - K) / (2 * sigma * sigma) ->
  p <= RInt (f 0) (- K) K -> exp eps * (2 * K * (/ (sigma * sqrt (2 * PI)) * exp (- B))) + delta < p ->
  ~ gaussian_private sigma eps delta D.
Proof.
  move=> K0 KD le_B le_p broken; have D0 : 0 <= D by lra.
  have c0 : 0 < / (sigma * sqrt (2 * PI)).
    apply: Rinv_0_lt_compat; apply: Rmult_lt_0_compat => //; apply: sqrt_lt_R0; have := PI_RGT_0; lra.
  have falls z : D - K <= z -> f 0 z <= f 0 (D - K).
    move=> le; rewrite /gaussian_density !Rminus_0_r; apply: Rmult_le_compat_l; first lra.
    apply: exp_le; apply: Rmult_le_compat_r; last nra.
    by apply: Rlt_le; apply: Rinv_0_lt_compat; apply: two_s2.
  have s0 : 0 <= f 0 (D - K) by apply: Rlt_le; apply: density_gt0.
  have few := @density_tail (D - K) (f 0 (D - K)) s0 falls (D + K) ltac:(lra).
  have at_most : f 0 (D - K) <= / (sigma * sqrt (2 * PI)) * exp (- B).
    rewrite /gaussian_density Rminus_0_r; apply: Rmult_le_compat_l; first lra.
    by apply: exp_le; rewrite /Rdiv Ropp_mult_distr_l_reverse; move: le_B; rewrite /Rdiv; lra.
  apply: (@gaussian_refuted sigma eps delta D (D - K) (D + K) p _ sigma_gt0 D0 _ _ few); first lra.
  - have := shifted 0 D (- K) K; rewrite Rminus_0_r (_ : - K + D = D - K); last ring.
    by rewrite (_ : K + D = D + K); [move=> <- | ring].
  - rewrite (_ : D + K - (D - K) = 2 * K); last ring.
    have := Rmult_le_compat_l _ _ _ (Rlt_le _ _ (exp_pos eps)) (Rmult_le_compat_l (2 * K) _ _ ltac:(lra) at_most); lra.
Qed.
End Delta.
