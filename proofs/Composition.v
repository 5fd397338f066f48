(** * Basic composition, adaptive, and group privacy

    [sequence M N] runs [M], then [N] with the first output in hand, and shows both outputs.

    Main theorems: [basic_composition] (epsilons and deltas add up), [group_privacy]. *)

From Dpassay Require Import Prelude Finite.

(** The joint distribution of t, drawn from [P], and u, drawn from [K t]. *)
Definition joint_mass (T U : finType) (P : dist T) (K : T -> dist U) (tu : T * U) : R := P tu.1 * K tu.1 tu.2.

Lemma joint_ge0 (T U : finType) (P : dist T) (K : T -> dist U) tu : 0 <= joint_mass P K tu.
Proof. by apply: Rmult_le_pos; apply: mass_ge0. Qed.

Lemma joint_sum (T U : finType) (P : dist T) (K : T -> dist U) : \sum_tu joint_mass P K tu = 1.
Proof.
  rewrite -(pair_bigA _ (fun t u => P t * K t u)) -[RHS](mass_sum P); apply: eq_bigr => t _.
  by rewrite sum_const_mult mass_sum Rmult_1_r.
Qed.

Definition joint (T U : finType) (P : dist T) (K : T -> dist U) : dist [finType of T * U] :=
  Dist (joint_ge0 P K) (joint_sum P K).

(** The part of an event that is left once the first output is known. *)
Definition section (T U : finType) (E : {set T * U}) (t : T) : {set U} := [set u | (t, u) \in E].

Lemma Pr_joint (T U : finType) (P : dist T) (K : T -> dist U) E :
  Pr (joint P K) E = \sum_t (P t * Pr (K t) (section E t)).
Proof.
  have -> : \sum_t (P t * Pr (K t) (section E t)) = \sum_t (\sum_u (joint P K (t, u) * (if (t, u) \in E then 1 else 0))).
    apply: eq_bigr => t _; rewrite Pr_as_sum -sum_const_mult; apply: eq_bigr => u _.
    by rewrite inE Rmult_assoc.
  by rewrite Pr_as_sum (pair_bigA _ (fun t u => joint P K (t, u) * (if (t, u) \in E then 1 else 0)));
    apply: eq_bigr => -[].
Qed.

Theorem composition_pair (T U : finType) eps1 delta1 eps2 delta2 (P Q : dist T) (K L : T -> dist U) :
  close eps1 delta1 P Q -> (forall t, close eps2 delta2 (K t) (L t)) -> 0 <= delta2 ->
  close (eps1 + eps2) (delta1 + delta2) (joint P K) (joint Q L).
Proof.
  move=> /hockey_stick hockey_le closeKL delta2_ge0 E; rewrite !Pr_joint.
  (* Given the first output, the second event has probability at most g t + delta2, with 0 <= g t <= 1. *)
  pose g t := Rmin 1 (exp eps2 * Pr (L t) (section E t)).
  have g01 t : 0 <= g t <= 1.
    split; last exact: Rmin_l.
    by apply: Rmin_glb; [lra | apply: Rmult_le_pos; [apply: Rlt_le; apply: exp_pos | apply: Pr_ge0]].
  have first : \sum_t (P t * Pr (K t) (section E t)) <= \sum_t (P t * g t) + delta2.
    rewrite -(Rmult_1_r delta2) -(mass_sum P) -sum_const_mult -sum_add; apply: sum_le => t _.
    have : Pr (K t) (section E t) <= g t + delta2.
      have := closeKL t (section E t); have := Pr_le1 (K t) (section E t).
      by rewrite /g /Rmin; case: Rle_dec => ?; lra.
    have := mass_ge0 P t; nra.
  have second : \sum_t (Q t * g t) <= exp eps2 * (\sum_t (Q t * Pr (L t) (section E t))).
    rewrite -sum_const_mult; apply: sum_le => t _.
    have : g t <= exp eps2 * Pr (L t) (section E t) by apply: Rmin_r.
    have := mass_ge0 Q t; nra.
  have := hockey_test eps1 P Q g01; have := exp_pos eps1; rewrite exp_plus; nra.
Qed.

(** [N x t] is the second mechanism after the first output t: adaptive. *)
Theorem basic_composition (X : Type) (T U : finType) eps1 delta1 eps2 delta2 (near : X -> X -> Prop)
    (M : X -> dist T) (N : X -> T -> dist U) :
  dp eps1 delta1 near M -> (forall t, dp eps2 delta2 near (fun x => N x t)) -> 0 <= delta2 ->
  dp (eps1 + eps2) (delta1 + delta2) near (fun x => joint (M x) (N x)).
Proof.
  by move=> dpM dpN d2 x y near_xy; apply: composition_pair => //; [apply: dpM | move=> t; apply: dpN].
Qed.

(** ** Group privacy *)

(** [steps near k x y]: k steps between neighbours lead from x to y. *)
Fixpoint steps (X : Type) (near : X -> X -> Prop) (k : nat) (x y : X) : Prop :=
  if k is k'.+1 then exists z, near x z /\ steps near k' z y else x = y.

(** 1 + e^eps + ... + e^((k-1) eps) *)
Fixpoint growth (eps : R) (k : nat) : R := if k is k'.+1 then 1 + exp eps * growth eps k' else 0.

Theorem group_privacy (X : Type) (T : finType) eps delta (near : X -> X -> Prop) (M : X -> dist T) k :
  dp eps delta near M -> dp (INR k * eps) (delta * growth eps k) (steps near k) M.
Proof.
  move=> dpM; elim: k => [|k IH] x y.
    by move=> -> E; rewrite /= Rmult_0_l exp_0; have := Pr_ge0 (M y) E; lra.
  case=> z [near_xz steps_zy] E; rewrite S_INR.
  have := dpM x z near_xz E; have := IH z y steps_zy E; have := exp_pos eps.
  rewrite Rmult_plus_distr_r Rmult_1_l exp_plus /=; nra.
Qed.

(** Pure DP: k steps cost k times eps. *)
Corollary group_privacy_pure (X : Type) (T : finType) eps (near : X -> X -> Prop) (M : X -> dist T) k :
  dp eps 0 near M -> dp (INR k * eps) 0 (steps near k) M.
Proof. by move=> /(@group_privacy _ _ _ _ _ _ k); rewrite Rmult_0_l. Qed.

(** ** Independent repetitions *)

Section Product.
Variable n : nat.
Variable T : finType.

Definition product_mass (P : 'I_n -> dist T) (t : {ffun 'I_n -> T}) : R := \prod_i P i (t i).

Lemma product_ge0 P t : 0 <= product_mass P t.
Proof. by apply: prod_ge0 => i; apply: mass_ge0. Qed.

Lemma product_sum P : \sum_t product_mass P t = 1.
Proof. by rewrite /product_mass -(bigA_distr_bigA (fun i t => P i t)) big1 // => i _; apply: mass_sum. Qed.

(** n mechanisms that do not depend on one another. *)
Definition product (P : 'I_n -> dist T) : dist [finType of {ffun 'I_n -> T}] := Dist (product_ge0 P) (product_sum P).

(** n times the same guarantee: n times eps.  Each step may have inputs of its own. *)
Theorem repeated_pure eps (P Q : 'I_n -> dist T) :
  (forall i, close eps 0 (P i) (Q i)) -> close (INR n * eps) 0 (product P) (product Q).
Proof.
  move=> closePQ; apply/pure_pointwise => t; rewrite -sum_const -exp_sum /= /product_mass -big_split.
  apply: prod_le => i; split; first exact: mass_ge0.
  exact: (pure_pointwise eps (P i) (Q i)).1 (closePQ i) (t i).
Qed.
End Product.
