(** * Delta as a function of eps, and pairs that dominate others

    [curve P Q z] is the largest P(E) - z Q(E) over all events: the hockey-stick divergence at z = e^eps.

    Main theorems: [curve_convex], [curve_falls], [curve_ends] and [curve_limit] (its shape), [other_order] (the same pair
    the other way round), [kl_ge0], [dominated_close] and [dominance_composes] (what dominates each step, adaptively,
    dominates all steps). *)

From Dpassay Require Import Prelude Finite Composition.

Definition curve (T : finType) (P Q : dist T) (z : R) : R := \sum_t Rmax 0 (P t - z * Q t).

Lemma curve_hockey (T : finType) eps (P Q : dist T) : hockey eps P Q = curve P Q (exp eps).
Proof. by []. Qed.

Section Shape.
Variable T : finType.
Variables P Q : dist T.

Theorem curve_falls z z' : z <= z' -> curve P Q z' <= curve P Q z.
Proof.
  move=> le; apply: sum_le => t _; have q0 := mass_ge0 Q t.
  by apply: Rmax_lub; [apply: Rmax_l | apply: Rle_trans (Rmax_r _ _); nra].
Qed.

Theorem curve_convex s z z' : 0 <= s <= 1 ->
  curve P Q (s * z + (1 - s) * z') <= s * curve P Q z + (1 - s) * curve P Q z'.
Proof.
  move=> s01; rewrite -!sum_const_mult -sum_add; apply: sum_le => t _.
  have := Rmax_l 0 (P t - z * Q t); have := Rmax_l 0 (P t - z' * Q t).
  have := Rmax_r 0 (P t - z * Q t); have := Rmax_r 0 (P t - z' * Q t).
  by move: (Rmax _ _) (Rmax _ _) => a b *; apply: Rmax_lub; nra.
Qed.

(** It is 1 at z = 0, and at least 0 and 1 - z. *)
Theorem curve_ends z : curve P Q 0 = 1 /\ 0 <= curve P Q z /\ 1 - z <= curve P Q z.
Proof.
  split; [|split].
  - rewrite -[RHS](mass_sum P); apply: eq_bigr => t _; have := mass_ge0 P t => ?.
    by rewrite Rmult_0_l Rminus_0_r Rmax_right.
  - by apply: sum_ge0 => t _; apply: Rmax_l.
  - have -> : 1 - z = \sum_t (P t + - z * Q t) by rewrite sum_add sum_const_mult !mass_sum; ring.
    by apply: sum_le => t _; apply: Rle_trans (Rmax_r 0 _); lra.
Qed.

(** Far out it is the probability of what only P can give. *)
Theorem curve_limit : exists z0, forall z, z0 <= z ->
  curve P Q z = Pr P [set t | if Req_EM_T (Q t) 0 then true else false].
Proof.
  pose inverse t := if Req_EM_T (Q t) 0 then 0 else / Q t.
  have inverse_ge0 t : 0 <= inverse t.
    rewrite /inverse; case: Req_EM_T => q /=; first lra.
    by apply: Rlt_le; apply: Rinv_0_lt_compat; have := mass_ge0 Q t; lra.
  exists (\sum_t inverse t) => z le; rewrite Pr_as_sum; apply: eq_bigr => t _; rewrite inE.
  have p0 := mass_ge0 P t; have q0 := mass_ge0 Q t.
  have : inverse t <= z by apply: Rle_trans le; apply: sum_ge_term.
  rewrite /inverse; case: Req_EM_T => q /=; first by rewrite q Rmult_0_r Rminus_0_r Rmax_right; lra.
  move=> large; rewrite Rmult_0_r Rmax_left //.
  have : P t <= 1 by rewrite -Pr_set1; apply: Pr_le1.
  have := Rmult_le_compat_r _ _ _ q0 large; rewrite Rinv_l //; lra.
Qed.

Theorem other_order eps : hockey eps P Q = 1 - exp eps + exp eps * hockey (- eps) Q P.
Proof.
  have e0 := exp_pos eps; have inv : exp eps * exp (- eps) = 1 by rewrite -exp_plus Rplus_opp_r exp_0.
  have -> : 1 - exp eps = \sum_t (P t + - exp eps * Q t) by rewrite sum_add sum_const_mult !mass_sum; ring.
  rewrite /hockey -sum_const_mult -sum_add; apply: eq_bigr => t _.
  have : exp eps * (Q t - exp (- eps) * P t) = exp eps * Q t - P t.
    by rewrite Rmult_minus_distr_l -Rmult_assoc inv; ring.
  by rewrite /Rmax; do 2!case: Rle_dec => ? /=; nra.
Qed.

(** The mean of the loss is not negative; where Q cannot give an output, P must not either. *)
Theorem kl_ge0 : (forall t, 0 < P t -> 0 < Q t) -> 0 <= \sum_t (P t * ln (P t / Q t)).
Proof.
  move=> covered; apply: (Rle_trans _ (\sum_t (P t + - (1) * Q t))).
    by rewrite sum_add sum_const_mult !mass_sum; lra.
  apply: sum_le => t _; have [p0 | <-] := mass_ge0 P t; last by have := mass_ge0 Q t; lra.
  have q0 := covered t p0; have r0 : 0 < Q t / P t by apply: Rdiv_lt_0_compat.
  have -> : ln (P t / Q t) = - ln (Q t / P t) by rewrite -ln_Rinv // Rinv_div.
  have le : ln (Q t / P t) <= Q t / P t - 1.
    by have := exp_ineq1_le (ln (Q t / P t)); rewrite exp_ln //; lra.
  have := Rmult_le_compat_l _ _ _ (Rlt_le _ _ p0) le.
  have -> : P t * (Q t / P t - 1) = Q t - P t by field; lra.
  lra.
Qed.
End Shape.

(** ** Dominating pairs *)

Definition dominated (T T' : finType) (P Q : dist T) (P' Q' : dist T') : Prop :=
  forall z, 0 <= z -> curve P Q z <= curve P' Q' z.

Theorem dominated_close (T T' : finType) (P Q : dist T) (P' Q' : dist T') eps delta :
  dominated P Q P' Q' -> close eps delta P' Q' -> close eps delta P Q.
Proof.
  move=> dom /hockey_stick le; apply/hockey_stick; apply: Rle_trans le.
  by apply: dom; apply: Rlt_le; apply: exp_pos.
Qed.

(** The same with a weight on each side. *)
Lemma dominated_scaled (T T' : finType) (P Q : dist T) (P' Q' : dist T') a b : dominated P Q P' Q' -> 0 <= a -> 0 <= b ->
  \sum_t Rmax 0 (a * P t - b * Q t) <= \sum_t Rmax 0 (a * P' t - b * Q' t).
Proof.
  move=> dom a0 b0; have [a_gt0 | a_is] := a0; last first.
    apply: (Rle_trans _ 0); last by apply: sum_ge0 => t _; apply: Rmax_l.
    apply: Req_le; apply: big1 => t _; have := mass_ge0 Q t => q0; rewrite -a_is Rmax_left //; nra.
  have scaled (U : finType) (R S : dist U) : \sum_t Rmax 0 (a * R t - b * S t) = a * curve R S (b / a).
    rewrite -sum_const_mult; apply: eq_bigr => t _; rewrite -RmaxRmult // Rmult_0_r; congr (Rmax _ _).
    by field; lra.
  rewrite !scaled; apply: Rmult_le_compat_l => //; apply: dom.
  by apply: Rmult_le_pos => //; apply: Rlt_le; apply: Rinv_0_lt_compat.
Qed.

Lemma curve_joint (T U : finType) (P Q : dist T) (K L : T -> dist U) z :
  curve (joint P K) (joint Q L) z = \sum_t (\sum_u Rmax 0 (P t * K t u - z * Q t * L t u)).
Proof.
  rewrite /curve (pair_bigA _ (fun t u => Rmax 0 (P t * K t u - z * Q t * L t u))) /=.
  by apply: eq_bigr => -[t u] _; rewrite /= /joint_mass /= Rmult_assoc.
Qed.

(** [K t] and [L t] are the second step after the first output t: adaptive. *)
Theorem dominance_composes (T U T' U' : finType) (P Q : dist T) (K L : T -> dist U) (P1 Q1 : dist T') (P2 Q2 : dist U') :
  dominated P Q P1 Q1 -> (forall t, dominated (K t) (L t) P2 Q2) ->
  dominated (joint P K) (joint Q L) (joint P1 (fun _ => P2)) (joint Q1 (fun _ => Q2)).
Proof.
  move=> first second z z0; rewrite !curve_joint.
  apply: (Rle_trans _ (\sum_t (\sum_u Rmax 0 (P t * P2 u - z * Q t * Q2 u)))).
    apply: sum_le => t _; apply: dominated_scaled; [exact: second | exact: mass_ge0 |].
    by apply: Rmult_le_pos => //; apply: mass_ge0.
  rewrite exchange_big [X in _ <= X]exchange_big; apply: sum_le => u _.
  have swap (V : finType) (R S : dist V) : \sum_t Rmax 0 (R t * P2 u - z * S t * Q2 u) =
                                          \sum_t Rmax 0 (P2 u * R t - z * Q2 u * S t).
    by apply: eq_bigr => t _; congr (Rmax _ _); ring.
  rewrite !swap; apply: dominated_scaled => //; first exact: mass_ge0.
  by apply: Rmult_le_pos => //; apply: mass_ge0.
Qed.
