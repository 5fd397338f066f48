(** * Mechanisms without randomness

    Main theorems: [no_noise_refuted] (two outputs that differ break every eps and every delta below 1),
    [no_noise_constant]. *)

From Dpassay Require Import Prelude.

(** (eps, delta)-DP of a mechanism without randomness: every event has probability 0 or 1. *)
Definition fixed_private (X V : Type) (f : X -> V) (eps delta : R) (near : X -> X -> Prop) : Prop :=
  forall x y, near x y -> forall A : V -> Prop, indicator (A (f x)) <= exp eps * indicator (A (f y)) + delta.

Theorem no_noise_refuted (X V : Type) (f : X -> V) eps delta (near : X -> X -> Prop) x y :
  near x y -> f x <> f y -> delta < 1 -> ~ fixed_private f eps delta near.
Proof.
  move=> near_xy differ d1 priv; have := priv x y near_xy (fun v => v = f x).
  rewrite indicator_true // indicator_false; [lra | by move=> same; apply: differ].
Qed.

Theorem no_noise_constant (X V : Type) (f : X -> V) (near : X -> X -> Prop) :
  (forall x y, near x y -> f x = f y) -> fixed_private f 0 0 near.
Proof. by move=> same x y /same -> A; rewrite exp_0; lra. Qed.
