(** * ADePT: clipped in l2, Laplace noise of scale 2C/eps

    The published proof says that two points of the ball are at most 2C apart.  In l1, which is what Laplace noise hides,
    they are up to 2C sqrt n apart, so that the true epsilon is exactly sqrt n times the claimed one.

    Main theorems: [adept_exact], [adept_refuted], and the repairs [adept_l1] and [adept_sqrt_n]. *)

From Coquelicot Require Import Coquelicot.
From Dpassay Require Import Prelude LaplaceVector Diameters Regions.

Section Adept.
Variable I : finType.                           (* the n coordinates *)
Variables C eps : R.
Hypothesis C_gt0 : 0 < C.
Hypothesis eps_gt0 : 0 < eps.
Notation n := (INR #|I|).

Lemma scale_gt0 : 0 < 2 * C / eps.
Proof. by apply: Rdiv_lt_0_compat; lra. Qed.

Theorem adept_exact : (0 < #|I|)%nat -> exact_eps (2 * C / eps) (both (@in_l2 I C)) (eps * sqrt n).
Proof.
  move=> pos; have -> : eps * sqrt n = 2 * C * sqrt n / (2 * C / eps) by field; lra.
  by apply: exact_on_l2 => //; [apply: scale_gt0 | lra].
Qed.

(** In more than one dimension the claim is false. *)
Theorem adept_refuted : (1 < #|I|)%nat -> ~ laplace_private (2 * C / eps) eps (both (@in_l2 I C)).
Proof.
  move=> two; rewrite adept_exact; last exact: ltnW.
  have : 1 < sqrt n; last nra.
  by rewrite -sqrt_1; apply: sqrt_lt_1_alt; split; [lra | apply: (lt_INR 1); apply/ltP].
Qed.

(** Clipping in l1 repairs it, and so does noise of scale 2C sqrt n / eps. *)
Theorem adept_l1 : (0 < #|I|)%nat -> exact_eps (2 * C / eps) (both (@in_l1 I C)) eps.
Proof.
  move=> pos; have := exact_on_l1 scale_gt0 pos (Rlt_le _ _ C_gt0).
  by have -> : 2 * C / (2 * C / eps) = eps by field; lra.
Qed.

Theorem adept_sqrt_n : (0 < #|I|)%nat -> exact_eps (2 * C * sqrt n / eps) (both (@in_l2 I C)) eps.
Proof.
  move=> pos; have s0 : 0 < sqrt n by apply: sqrt_lt_R0; apply: lt_0_INR; apply/ltP.
  have b0 : 0 < 2 * C * sqrt n / eps by apply: Rdiv_lt_0_compat => //; nra.
  have := exact_on_l2 b0 pos (Rlt_le _ _ C_gt0).
  by have -> : 2 * C * sqrt n / (2 * C * sqrt n / eps) = eps by field; lra.
Qed.
End Adept.
