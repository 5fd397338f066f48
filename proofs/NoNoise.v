(** * Mechanisms without randomness

    Main theorems: [no_noise_refuted] (two outputs that differ break every eps and every delta below 1),
    [no_noise_constant]. *)

From Dpassay Require Import Prelude.

(** (eps, delta)-DP of a mechanism without randomness: every event has probability 0 or 1. *)
Definition fixed_private (X V : Type) (f : X -> V) (eps delta : R) (near : X -> X -> Prop) : Prop :=
  forall x y, near x y -> forall A : V -> bool,
  (if A (f x) then 1 else 0) <= exp eps * (if A (f y) then 1 else 0) + delta.

(** [A] is an event that tells the two outputs apart. *)
Theorem no_noise_refuted (X V : Type) (f : X -> V) eps delta (near : X -> X -> Prop) (A : V -> bool) x y :
  near x y -> delta < 1 -> A (f x) -> ~~ A (f y) -> ~ fixed_private f eps delta near.
Proof. by move=> near_xy d1 Ax /negbTE Ay priv; have := priv x y near_xy A; rewrite Ax Ay; lra. Qed.

Theorem no_noise_constant (X V : Type) (f : X -> V) (near : X -> X -> Prop) :
  (forall x y, near x y -> f x = f y) -> fixed_private f 0 0 near.
Proof. by move=> same x y /same -> A; rewrite exp_0; lra. Qed.
