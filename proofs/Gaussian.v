(** * Gaussian noise on one number

    It satisfies no pure differential privacy: for every eps there is an interval that the larger input gives more than
    e^eps times as often.  An (eps, delta) is refuted by one interval, whose two integrals the tactic [integral] bounds.

    Main theorems: [gaussian_no_pure_dp], [gaussian_refuted], [gaussian_not_pure]. *)

From Coquelicot Require Import Coquelicot.
From Dpassay Require Import Prelude.

Section Gaussian.
Variable sigma : R.
Hypothesis sigma_gt0 : 0 < sigma.

Definition gaussian_density (x z : R) : R :=
  / (sigma * sqrt (2 * PI)) * exp (- ((z - x) * (z - x)) / (2 * sigma * sigma)).

Lemma density_gt0 x z : 0 < gaussian_density x z.
Proof.
  apply: Rmult_lt_0_compat; last exact: exp_pos.
  apply: Rinv_0_lt_compat; apply: Rmult_lt_0_compat => //; apply: sqrt_lt_R0.
  by have := PI_RGT_0; lra.
Qed.

Lemma density_continuous x z : continuous (gaussian_density x) z.
Proof. by apply: (ex_derive_continuous (V := R_NormedModule)); rewrite /gaussian_density; auto_derive. Qed.

Lemma density_integrable x l h : ex_RInt (gaussian_density x) l h.
Proof. by apply: (ex_RInt_continuous (V := R_CompleteNormedModule)) => z _; apply: density_continuous. Qed.

(** The loss at z is linear in z. *)
Lemma gaussian_loss x y z :
  gaussian_density x z = exp ((x - y) * (2 * z - x - y) / (2 * sigma * sigma)) * gaussian_density y z.
Proof.
  have swap e c g : e * (c * g) = c * (e * g) by ring.
  rewrite /gaussian_density swap -exp_plus.
  by congr (_ * exp _); field; lra.
Qed.

Theorem gaussian_no_pure_dp x y eps : y < x ->
  exists l h, l < h /\ exp eps * RInt (gaussian_density y) l h < RInt (gaussian_density x) l h.
Proof.
  move=> yx; pose l := (2 * sigma * sigma * (Rabs eps + 1) / (x - y) + x + y) / 2.
  have s2 : 0 < 2 * sigma * sigma by repeat apply: Rmult_lt_0_compat; lra.
  exists l, (l + 1); split; first lra.
  have loss z : l < z -> exp (eps + 1) * gaussian_density y z <= gaussian_density x z.
    move=> lz; rewrite (gaussian_loss x y); apply: Rmult_le_compat_r; first by apply: Rlt_le; apply: density_gt0.
    apply: exp_le; apply: (Rle_trans _ (Rabs eps + 1)); first by have := Rle_abs eps; lra.
    apply: (Rmult_le_reg_r (2 * sigma * sigma)) => //.
    have -> : (x - y) * (2 * z - x - y) / (2 * sigma * sigma) * (2 * sigma * sigma) = (x - y) * (2 * z - x - y).
      by field; lra.
    apply: (Rle_trans _ ((x - y) * (2 * l - x - y))); last by nra.
    by rewrite /l; apply: Req_le; field; lra.
  have positive : 0 < RInt (gaussian_density y) l (l + 1).
    apply: RInt_gt_0 => [|z _|z _]; [lra | exact: density_gt0 | exact: density_continuous].
  apply: (Rlt_le_trans _ (exp (eps + 1) * RInt (gaussian_density y) l (l + 1))).
    by apply: Rmult_lt_compat_r => //; apply: exp_increasing; lra.
  rewrite -[X in X <= _](RInt_scal (V := R_CompleteNormedModule)); last exact: density_integrable.
  apply: RInt_le; [lra | | exact: density_integrable | by move=> z [lz _]; apply: loss].
  by apply: (ex_RInt_scal (V := R_NormedModule)); apply: density_integrable.
Qed.

(** (eps, delta)-DP of one number that neighbours move by at most D.  An event is given by its indicator function; more
    generally [w z] is the probability with which a test that sees the output z says yes. *)
Definition gaussian_private (eps delta D : R) : Prop :=
  forall x y, Rabs (x - y) <= D -> forall (w : R -> R) l h, l <= h -> (forall z, 0 <= w z <= 1) ->
  ex_RInt (fun z => w z * gaussian_density x z) l h -> ex_RInt (fun z => w z * gaussian_density y z) l h ->
  RInt (fun z => w z * gaussian_density x z) l h <= exp eps * RInt (fun z => w z * gaussian_density y z) l h + delta.

(** One interval refutes it. *)
Theorem gaussian_refuted eps delta D l h p q : 0 < sigma -> 0 <= D -> l <= h ->
  p <= RInt (gaussian_density D) l h -> RInt (gaussian_density 0) l h <= q -> exp eps * q + delta < p ->
  ~ gaussian_private eps delta D.
Proof.
  move=> _ D0 lh p_le le_q broken priv.
  have one x : forall z, 1 * gaussian_density x z = gaussian_density x z by move=> z; rewrite Rmult_1_l.
  have near : Rabs (D - 0) <= D by rewrite Rminus_0_r Rabs_right; lra.
  have all (z : R) : 0 <= (fun _ => 1) z <= 1 by lra.
  have ex x : ex_RInt (fun z => 1 * gaussian_density x z) l h.
    by apply: (ex_RInt_ext (gaussian_density x)) => [z _|]; [rewrite one | apply: density_integrable].
  have := priv D 0 near (fun _ => 1) l h lh all (ex D) (ex 0).
  have same x : RInt (fun z => 1 * gaussian_density x z) l h = RInt (gaussian_density x) l h.
    by apply: RInt_ext => z _; apply: Rmult_1_l.
  rewrite !same.
  have := exp_pos eps; nra.
Qed.

(** With delta = 0 no eps holds. *)
Corollary gaussian_not_pure eps D : 0 < D -> ~ gaussian_private eps 0 D.
Proof.
  move=> D0; have [l [h [lh broken]]] := gaussian_no_pure_dp eps D0.
  apply: (@gaussian_refuted _ _ _ l h _ _ sigma_gt0 _ _ (Rle_refl _) (Rle_refl _)); lra.
Qed.
End Gaussian.
