(** * Differential privacy for finitely many outcomes

    The definitions that papers use, for a mechanism with finitely many outputs.  [close eps delta P Q] is one order of
    one pair of inputs; [dp eps delta near M] is (eps, delta)-differential privacy of the mechanism [M] for the
    neighbours [near].  Pure eps-DP is the case delta = 0.

    Main theorems: [hockey_stick], [pure_pointwise], [disjoint_outputs]. *)

From Dpassay Require Import Prelude.

(** ** Distributions and events *)

Record dist (T : finType) := Dist {
  mass :> T -> R;
  mass_ge0 : forall t, 0 <= mass t;
  mass_sum : \sum_t mass t = 1 }.

(** The probability of an event, that is, of a set of outputs. *)
Definition Pr (T : finType) (P : dist T) (E : {set T}) : R := \sum_(t in E) P t.

Lemma Pr_ge0 (T : finType) (P : dist T) E : 0 <= Pr P E.
Proof. by apply: sum_ge0 => t _; apply: mass_ge0. Qed.

Lemma Pr_setT (T : finType) (P : dist T) : Pr P setT = 1.
Proof. by rewrite -(mass_sum P); apply: eq_bigl => t; rewrite inE. Qed.

Lemma Pr_set1 (T : finType) (P : dist T) t : Pr P [set t] = P t.
Proof. by rewrite /Pr big_set1. Qed.

Lemma Pr_as_sum (T : finType) (P : dist T) (E : {set T}) :
  Pr P E = \sum_t (P t * (if t \in E then 1 else 0)).
Proof.
  rewrite /Pr big_mkcond; apply: eq_bigr => t _; case: (t \in E); lra.
Qed.

Lemma Pr_le1 (T : finType) (P : dist T) E : Pr P E <= 1.
Proof.
  rewrite -(mass_sum P) Pr_as_sum; apply: sum_le => t _.
  have := mass_ge0 P t; case: (t \in E); lra.
Qed.

(** One output with certainty. *)
Definition certain_mass (T : finType) (u t : T) : R := if t == u then 1 else 0.

Lemma certain_ge0 (T : finType) (u t : T) : 0 <= certain_mass u t.
Proof. by rewrite /certain_mass; case: eqP; lra. Qed.

Lemma certain_sum (T : finType) (u : T) : \sum_t certain_mass u t = 1.
Proof. by rewrite (bigD1 u) //= big1 /certain_mass ?eqxx => [|t /negbTE ->]; lra. Qed.

Definition certain (T : finType) (u : T) : dist T := Dist (certain_ge0 u) (certain_sum u).

(** Yes with probability p. *)
Definition coin_mass (p : R) (t : bool) : R := if t then p else 1 - p.

Lemma coin_ge0 p : 0 <= p <= 1 -> forall t, 0 <= coin_mass p t.
Proof. by move=> p01 [|]; rewrite /coin_mass; lra. Qed.

Lemma coin_sum p : \sum_t coin_mass p t = 1.
Proof. by rewrite big_bool /coin_mass /=; lra. Qed.

Definition coin p (p01 : 0 <= p <= 1) : dist bool_finType := Dist (coin_ge0 p01) (coin_sum p).

(** ** Differential privacy *)

(** One order of one pair of output distributions. *)
Definition close (T : finType) (eps delta : R) (P Q : dist T) : Prop :=
  forall E : {set T}, Pr P E <= exp eps * Pr Q E + delta.

(** (eps, delta)-differential privacy: for all neighbouring inputs x and y and every event.  The relation is used as it
    is: a symmetric relation, as in papers, gives both orders. *)
Definition dp (X : Type) (T : finType) (eps delta : R) (near : X -> X -> Prop) (M : X -> dist T) : Prop :=
  forall x y, near x y -> close eps delta (M x) (M y).

(** Any two inputs are neighbours: local differential privacy. *)
Definition any_two {X : Type} (x y : X) : Prop := True.

(** The hockey-stick divergence. *)
Definition hockey (T : finType) (eps : R) (P Q : dist T) : R :=
  \sum_t Rmax 0 (P t - exp eps * Q t).

(** A test with values between 0 and 1 gains at most the hockey-stick divergence. *)
Lemma hockey_test (T : finType) eps (P Q : dist T) (g : T -> R) :
  (forall t, 0 <= g t <= 1) ->
  \sum_t (P t * g t) <= exp eps * (\sum_t (Q t * g t)) + hockey eps P Q.
Proof.
  move=> g01; rewrite -sum_const_mult -sum_add; apply: sum_le => t _.
  have [g0 g1] := g01 t.
  have max1 := Rmax_r 0 (P t - exp eps * Q t); have max0 := Rmax_l 0 (P t - exp eps * Q t).
  nra.
Qed.

(** The largest value of P(E) - e^eps Q(E) over all events is the hockey-stick divergence, so that (eps, delta)-DP of a
    pair is a bound on it. *)
Theorem hockey_stick (T : finType) eps delta (P Q : dist T) :
  close eps delta P Q <-> hockey eps P Q <= delta.
Proof.
  split=> [closePQ | hockey_le E].
  - pose E := [set t | if Rle_dec 0 (P t - exp eps * Q t) then true else false].
    have := closePQ E; suff -> : hockey eps P Q = Pr P E - exp eps * Pr Q E by lra.
    suff : hockey eps P Q + exp eps * Pr Q E = Pr P E by lra.
    rewrite /hockey !Pr_as_sum -sum_const_mult -sum_add; apply: eq_bigr => t _.
    by rewrite inE /Rmax; case: Rle_dec => ? /=; lra.
  - have test t : 0 <= (if t \in E then 1 else 0) <= 1 by case: (t \in E); lra.
    by have := hockey_test eps P Q test; rewrite -!Pr_as_sum; lra.
Qed.

(** Pure DP can be checked output by output. *)
Theorem pure_pointwise (T : finType) eps (P Q : dist T) :
  close eps 0 P Q <-> forall t, P t <= exp eps * Q t.
Proof.
  split=> [closePQ t | le_PQ E].
  - by have := closePQ [set t]; rewrite !Pr_set1; lra.
  - by rewrite Rplus_0_r /Pr -sum_const_mult; apply: sum_le => t _.
Qed.

(** A larger eps or delta is a weaker guarantee. *)
Lemma close_weaken (T : finType) eps eps' delta delta' (P Q : dist T) :
  eps <= eps' -> delta <= delta' -> close eps delta P Q -> close eps' delta' P Q.
Proof.
  move=> le_eps le_delta closePQ E.
  have := closePQ E; have := Pr_ge0 Q E.
  have := exp_le le_eps.
  nra.
Qed.

(** An output that only one input can give: no eps holds, and delta is at least its probability.  So a mechanism whose
    sets of possible outputs differ between neighbours satisfies no pure DP. *)
Theorem disjoint_outputs (T : finType) eps delta (P Q : dist T) (E : {set T}) :
  Pr Q E = 0 -> close eps delta P Q -> Pr P E <= delta.
Proof. by move=> Q0 closePQ; have := closePQ E; rewrite Q0; lra. Qed.

Corollary different_outputs_no_pure_dp (X : Type) (T : finType) eps (near : X -> X -> Prop) (M : X -> dist T) x y t :
  near x y -> 0 < M x t -> M y t = 0 -> ~ dp eps 0 near M.
Proof.
  move=> near_xy Mx My dpM.
  by have := (pure_pointwise eps (M x) (M y)).1 (dpM x y near_xy) t; rewrite My; lra.
Qed.

(** A bound on the tail of the loss suffices for (eps, delta)-DP (Dwork and Roth, Lemma 3.17) ... *)
Theorem tail_bound_suffices (T : finType) eps delta (P Q : dist T) :
  Pr P [set t | if Rlt_dec (exp eps * Q t) (P t) then true else false] <= delta -> close eps delta P Q.
Proof.
  move=> tail; apply/hockey_stick; apply: Rle_trans tail; rewrite Pr_as_sum; apply: sum_le => t _.
  rewrite inE; have := mass_ge0 P t; have := mass_ge0 Q t; have := exp_pos eps.
  by case: Rlt_dec => ? /=; rewrite /Rmax; case: Rle_dec => ? /=; nra.
Qed.
