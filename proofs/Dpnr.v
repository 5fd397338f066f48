(** * DPNR: k elements that span 0 to 1, Laplace noise of scale 1/eps on each

    The published proof counts one element; one word changes all k of them.  In T training steps with new noise it is T
    times as much.  Theorem 2 of the paper combines word dropout with eps, where k eps belongs.

    Main theorems: [dpnr_exact], [dpnr_refuted], [dpnr_training], [dpnr_scaled], [dpnr_dropout_exact],
    [dpnr_dropout_refuted]. *)

From Coquelicot Require Import Coquelicot.
From Dpassay Require Import Prelude Sampling LaplaceVector Diameters Regions.

Section Dpnr.
Variable I : finType.                           (* the k elements *)
Variable eps : R.
Hypothesis eps_gt0 : 0 < eps.
Hypothesis two : (1 < #|I|)%nat.
Notation k := (INR #|I|).

Lemma scale_gt0 : 0 < 1 / eps.
Proof. by apply: Rdiv_lt_0_compat; lra. Qed.

Lemma k_gt1 : 1 < k.
Proof. by apply: (lt_INR 1); apply/ltP. Qed.

Theorem dpnr_exact : exact_eps (1 / eps) (both (@minmax I)) (k * eps).
Proof.
  have -> : k * eps = k / (1 / eps) by field; lra.
  by apply: exact_on_minmax => //; apply: scale_gt0.
Qed.

Theorem dpnr_refuted : ~ laplace_private (1 / eps) eps (both (@minmax I)).
Proof. by rewrite dpnr_exact; have := k_gt1; nra. Qed.

(** T steps with new noise: T k eps. *)
Theorem dpnr_training T : (0 < T)%nat ->
  exact_eps (I := [finType of 'I_T * I]) (1 / eps) (copies (both (@minmax I))) (INR T * (k * eps)).
Proof. by move=> T0; apply: exact_copies => //; [apply: scale_gt0 | apply: dpnr_exact]. Qed.

(** Noise for all k elements repairs it. *)
Theorem dpnr_scaled : exact_eps (k / eps) (both (@minmax I)) eps.
Proof.
  have k1 := k_gt1; have b0 : 0 < k / eps by apply: Rdiv_lt_0_compat; lra.
  by have := exact_on_minmax b0 two; have -> : k / (k / eps) = eps by field; lra.
Qed.

(** With word dropout: exactly ln(mu + (1-mu) e^(k eps)), where q = 1 - mu. *)
Theorem dpnr_dropout_exact q e : 0 <= q <= 1 ->
  (dropped_private (1 / eps) q e (@minmax I) <-> amplified q (k * eps) <= e).
Proof.
  move=> q01; have b0 := scale_gt0; have ke : 0 <= k * eps by have := k_gt1; nra.
  have i0 := Rinv_0_lt_compat _ b0.
  split.
  - have /card_gt1P [i [j [_ _ neq]]] := two; have [bx [by_ d]] := minmax_pair neq.
    by apply: (dropped_lower b0 q01 bx by_); rewrite d; apply: Req_le; field; lra.
  - move=> le x y r rx ry rr B.
    have up : dropped_private (1 / eps) q (amplified q (k * eps)) (@minmax I).
      apply: dropped_upper => // u v ru rv; have := minmax_upper ru rv.
      have -> : k * eps = k / (1 / eps) by field; lra.
      by move=> d; apply: Rmult_le_compat_r; lra.
    apply: Rle_trans (up x y r rx ry rr B) _; apply: Rmult_le_compat_r; last exact: exp_le.
    have := prob_ge0 b0 r B; have := prob_ge0 b0 y B; nra.
Qed.

Theorem dpnr_dropout_refuted q : 0 < q <= 1 -> ~ dropped_private (1 / eps) q (amplified q eps) (@minmax I).
Proof.
  move=> q01; rewrite dpnr_dropout_exact; last lra.
  move=> /exp_le; rewrite !exp_amplified; try lra.
  have : exp eps < exp (k * eps) by apply: exp_increasing; have := k_gt1; nra.
  nra.
Qed.
End Dpnr.
