(** * Post-processing

    No function of the output, deterministic or randomized, increases the privacy loss.

    Main theorem: [post_processing]. *)

From Dpassay Require Import Prelude Finite.

(** Draw t from [P], then an output from [K t]. *)
Lemma bind_ge0 (T U : finType) (P : dist T) (K : T -> dist U) u : 0 <= \sum_t (P t * K t u).
Proof. by apply: sum_ge0 => t _; apply: Rmult_le_pos; apply: mass_ge0. Qed.

Lemma bind_sum (T U : finType) (P : dist T) (K : T -> dist U) : \sum_u (\sum_t (P t * K t u)) = 1.
Proof.
  rewrite exchange_big -[RHS](mass_sum P); apply: eq_bigr => t _.
  by rewrite sum_const_mult mass_sum Rmult_1_r.
Qed.

Definition bind (T U : finType) (P : dist T) (K : T -> dist U) : dist U := Dist (bind_ge0 P K) (bind_sum P K).

Lemma Pr_bind (T U : finType) (P : dist T) (K : T -> dist U) E : Pr (bind P K) E = \sum_t (P t * Pr (K t) E).
Proof. by rewrite /Pr exchange_big; apply: eq_bigr => t _; rewrite sum_const_mult. Qed.

Theorem post_processing_pair (T U : finType) eps delta (P Q : dist T) (K : T -> dist U) :
  close eps delta P Q -> close eps delta (bind P K) (bind Q K).
Proof.
  move=> /hockey_stick hockey_le E; rewrite !Pr_bind.
  have test t : 0 <= Pr (K t) E <= 1 by split; [apply: Pr_ge0 | apply: Pr_le1].
  by have := hockey_test eps P Q test; lra.
Qed.

Theorem post_processing (X : Type) (T U : finType) eps delta (near : X -> X -> Prop) (M : X -> dist T)
    (K : T -> dist U) :
  dp eps delta near M -> dp eps delta near (fun x => bind (M x) K).
Proof. by move=> dpM x y near_xy; apply: post_processing_pair; apply: dpM. Qed.

(** A mixture over common randomness: what holds given every outcome of it holds for the mixture. *)
Theorem mixture (T U : finType) eps delta (W : dist T) (K L : T -> dist U) :
  (forall t, close eps delta (K t) (L t)) -> close eps delta (bind W K) (bind W L).
Proof.
  move=> closeKL E; rewrite !Pr_bind -(Rmult_1_r delta) -(mass_sum W) -!sum_const_mult -sum_add.
  apply: sum_le => t _; have := closeKL t E; have := mass_ge0 W t; nra.
Qed.
