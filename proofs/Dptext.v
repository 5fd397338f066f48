(** * DPText: the inverse distribution function with the wrong uniform distribution

    Laplace noise is -b sgn(v) ln(1 - 2|v|) with v uniform on (-1/2, 1/2).  DPText draws v from (0, 1).  For v < 1/2 the
    noise is then positive, and for v > 1/2 the logarithm has no real value; whatever is done there, the noise is never
    negative, so that an output below the input is impossible and no eps holds.

    Main theorems: [inverse_cdf] (any distribution function), [right_inverse] (the formula with the right v has the Laplace distribution function), [wrong_inverse]
    (with the wrong v it is one-sided), [one_sided_no_dp] and [dptext_refuted]. *)

From Coquelicot Require Import Coquelicot.
From Dpassay Require Import Prelude Laplace.

(** Inverse-CDF sampling: if q is the least number with u <= F(q), then q <= y is the same as u <= F(y).  So with u uniform
    the number q is at most y with probability F(y). *)
Theorem inverse_cdf (F : R -> R) u q y : (forall y y', y <= y' -> F y <= F y') ->
  u <= F q -> (forall y, u <= F y -> q <= y) -> (q <= y <-> u <= F y).
Proof. by move=> grows at_q least; split=> [/grows | /least //]; lra. Qed.

Section Dptext.
Variable b : R.
Hypothesis b_gt0 : 0 < b.

Definition formula (v : R) : R := if Rle_dec 0 v then - b * ln (1 - 2 * v) else b * ln (1 + 2 * v).

(** Right: v = u - 1/2 with u uniform on (0, 1).  The noise is at most z if and only if u is at most the distribution
    function at z, so that this is its probability. *)
Theorem right_inverse u z : 0 < u < 1 -> formula (u - / 2) <= z <-> u <= laplace_cdf b 0 z.
Proof.
  move=> u01; have i0 := Rinv_0_lt_compat b b_gt0.
  have div a c : b * a <= c <-> a <= c / b.
    split=> le; first by apply: (Rmult_le_reg_l b) => //; have -> : b * (c / b) = c by field; lra.
    by have := Rmult_le_compat_l b _ _ (Rlt_le _ _ b_gt0) le; have -> : b * (c / b) = c by field; lra.
  rewrite /formula /laplace_cdf Rminus_0_r; case: Rle_dec => uh /=; case: Rle_dec => z0 /=.
  - (* u >= 1/2 and z <= 0: only u = 1/2 and z = 0 *)
    split=> [le | le].
    + have ln0 : ln (1 - 2 * (u - / 2)) <= 0 by rewrite -ln_1; apply: ln_mono; lra.
      have zz : z = 0 by nra.
      have l1 : ln (1 - 2 * (u - / 2)) = 0 by nra.
      have : 1 - 2 * (u - / 2) = 1 by rewrite -(exp_ln (1 - 2 * (u - / 2))) ?l1 ?exp_0; lra.
      by rewrite zz /Rdiv Rmult_0_l exp_0; lra.
    + have e1 : exp (z / b) <= 1 by rewrite -exp_0; apply: exp_le; rewrite /Rdiv; nra.
      have uu : u = / 2 by lra.
      have e2 : exp (z / b) = 1 by lra.
      have : z / b = 0 by rewrite -(ln_exp (z / b)) e2 ln_1.
      rewrite uu Rminus_eq_0 Rmult_0_r Rminus_0_r ln_1 => zb.
      have : z = 0 by have -> : z = z / b * b; [field; lra | rewrite zb; lra].
      lra.
  - have -> : - b * ln (1 - 2 * (u - / 2)) = b * ln (/ (2 * (1 - u))).
      by rewrite ln_Rinv; [rewrite (_ : 1 - 2 * (u - / 2) = 2 * (1 - u)); [ring | lra] | lra].
    rewrite div ln_le_exp; last by apply: Rinv_0_lt_compat; lra.
    rewrite (_ : (0 - z) / b = - (z / b)); last by field; lra.
    rewrite exp_Ropp; have e0 := exp_pos (z / b); have ie0 := Rinv_0_lt_compat _ e0.
    have u2 : 0 < 2 * (1 - u) by lra.
    split=> le.
    + have := Rinv_le_contravar _ _ (Rinv_0_lt_compat _ u2) le; rewrite Rinv_inv; lra.
    + have : / exp (z / b) <= 2 * (1 - u) by lra.
      move=> /(Rinv_le_contravar _ _ ie0); rewrite Rinv_inv; lra.
  - rewrite div ln_le_exp; last lra.
    by split; lra.
  - have : ln (1 + 2 * (u - / 2)) <= 0 by rewrite -ln_1; apply: ln_mono; lra.
    have : exp ((0 - z) / b) <= 1 by rewrite -exp_0; apply: exp_le; rewrite /Rdiv; nra.
    by split; nra.
Qed.

(** Wrong: v uniform on (0, 1).  Given v < 1/2 the noise is at most z with probability 1 - e^(-z/b), which is never for
    z <= 0: exponential noise. *)
Theorem wrong_inverse v z : 0 < v < / 2 -> formula v <= z <-> v <= / 2 * (1 - exp (- z / b)).
Proof.
  move=> v01; rewrite /formula; case: Rle_dec => ? /=; last lra.
  have -> : - b * ln (1 - 2 * v) <= z <-> - z / b <= ln (1 - 2 * v).
    split=> le.
    - by apply: (Rmult_le_reg_l b) => //; rewrite (_ : b * (- z / b) = - z); [lra | field; lra].
    - have := Rmult_le_compat_l b _ _ (Rlt_le _ _ b_gt0) le.
      by rewrite (_ : b * (- z / b) = - z); [lra | field; lra].
  split=> [/exp_le | le]; first by rewrite exp_ln; lra.
  by apply: exp_le_inv; rewrite exp_ln; lra.
Qed.

Theorem never_negative v : 0 < v < / 2 -> 0 < formula v.
Proof.
  move=> v01; apply: Rnot_le_lt; rewrite wrong_inverse // Ropp_0 /Rdiv Rmult_0_l exp_0; lra.
Qed.

(** ** No eps holds *)

(** One-sided noise: 0 with probability [zero], no number with probability [lost], otherwise exponential with mean b.
    This is the probability that the output is a number of at most t, for the input x. *)
Definition one_sided_cdf (zero lost x t : R) : R :=
  if Rlt_dec t x then 0 else zero + (1 - zero - lost) * (1 - exp (- (t - x) / b)).

(** eps-DP of the events "a number of at most t", for inputs between l and h. *)
Definition one_sided_private (zero lost eps l h : R) : Prop :=
  forall x y t, l <= x <= h -> l <= y <= h -> one_sided_cdf zero lost x t <= exp eps * one_sided_cdf zero lost y t.

Theorem one_sided_no_dp zero lost eps l h : 0 <= zero -> 0 <= lost -> zero + lost < 1 -> l < h ->
  ~ one_sided_private zero lost eps l h.
Proof.
  move=> z0 l0 some lh priv; have := priv l h ((l + h) / 2); rewrite /one_sided_cdf.
  case: Rlt_dec => ? /=; first by exfalso; lra.
  case: Rlt_dec => ? /=; last by exfalso; lra.
  have : exp (- ((l + h) / 2 - l) / b) < 1.
    by rewrite -exp_0; apply: exp_increasing; rewrite /Rdiv; have := Rinv_0_lt_compat b b_gt0; nra.
  by move=> ? /(_ ltac:(lra) ltac:(lra)); nra.
Qed.
End Dptext.

(** The published claim, inputs in [0, 1] and b = 1/eps, in all readings of v > 1/2: 0, another draw, no number. *)
Corollary dptext_refuted eps : 0 < eps ->
  ~ one_sided_private (1 / eps) (1/2) 0 eps 0 1 /\ ~ one_sided_private (1 / eps) 0 0 eps 0 1 /\
  ~ one_sided_private (1 / eps) 0 (1/2) eps 0 1.
Proof.
  by move=> e0; have b0 : 0 < 1 / eps; [apply: Rdiv_lt_0_compat; lra |]; repeat split; apply: one_sided_no_dp; lra.
Qed.
