(** * What a trace may conclude from couplings that were run

    The trials of a trace live on one finite probability space [W]: its outcomes are the random bits of a trial.  A
    trial compares outputs that are functions of these bits.

    Main theorems: [all_agree] (1: trials that all agree bound the probability of disagreement), [replay_upper] (2: an
    upper bound for a pair), [refutation_survives] (3: what a law shows, the code shows but for p), [two_calls] (4),
    [replay_not_pure] (no number of replays gives a pure bound). *)

From Coquelicot Require Import Coquelicot.
From Dpassay Require Import Prelude Finite Composition.

Lemma power_falls (N : nat) p r : (0 < N)%nat -> p < r -> r <= 1 -> (1 - r) ^ N < (1 - p) ^ N.
Proof.
  move=> N0 pr r1; elim: N N0 => [//|[|N] IH] _; first by rewrite /=; lra.
  have := IH isT; have : 0 <= (1 - r) ^ N.+1 by apply: pow_le; lra.
  rewrite -!tech_pow_Rmult -/((1 - r) ^ N.+1); nra.
Qed.

(** p = 1 - alpha^(1/N) is such a p, and it is at most ln(1/alpha) / N. *)
Theorem agreement_bound (N : nat) alpha : (0 < N)%nat -> 0 < alpha <= 1 ->
  (1 - (1 - Rpower alpha (/ INR N))) ^ N = alpha /\ 1 - Rpower alpha (/ INR N) <= ln (/ alpha) / INR N.
Proof.
  move=> N0 a01; have n0 : 0 < INR N by apply: lt_0_INR; apply/ltP.
  split.
  - rewrite (_ : 1 - (1 - _) = Rpower alpha (/ INR N)); last by ring.
    rewrite -Rpower_pow; last exact: exp_pos.
    by rewrite Rpower_mult Rinv_l ?Rpower_1; lra.
  - rewrite /Rpower ln_Rinv; last lra.
    have := exp_ineq1_le (/ INR N * ln alpha); rewrite /Rdiv; lra.
Qed.

Section Trials.
Variables W T : finType.
Variable bits : dist W.                         (* the random bits of one trial *)

(** The probability that a property of the bits holds, and the distribution of a function of them. *)
Definition chance (prop : W -> bool) : R := Pr bits [set w | prop w].
Definition in_event (X : W -> T) (E : {set T}) : R := chance (fun w => X w \in E).

(** 1. Watched equals natural.  If a trial disagrees with a probability above p, all of N independent trials agree with
    a probability below (1-p)^N.  With (1-p)^N = alpha that is below alpha. *)
Theorem all_agree (N : nat) (disagrees : W -> bool) p alpha : (0 < N)%nat -> (1 - p) ^ N = alpha -> p < chance disagrees ->
  Pr (product (fun _ : 'I_N => bits)) [set w : {ffun 'I_N -> W} | [forall i, ~~ disagrees (w i)]] < alpha.
Proof.
  move=> N0 <- more; have := product_box (fun _ : 'I_N => bits) (fun _ => [set w | ~~ disagrees w]).
  have -> : [set w : {ffun 'I_N -> W} | [forall i, w i \in [set v | ~~ disagrees v]]] =
            [set w : {ffun 'I_N -> W} | [forall i, ~~ disagrees (w i)]].
    by apply/setP => w; rewrite !inE; apply: eq_forallb => i; rewrite inE.
  move=> ->; have -> : Pr bits [set w | ~~ disagrees w] = 1 - chance disagrees.
    have : Pr bits [set w | ~~ disagrees w] + chance disagrees = 1; last lra.
    rewrite -(mass_sum bits) /chance !Pr_as_sum -sum_add; apply: eq_bigr => w _; rewrite !inE.
    by case: (disagrees w) => /=; lra.
  have -> : \big[Rmult/1]_(i < N) (1 - chance disagrees) = (1 - chance disagrees) ^ N.
    by rewrite big_const_ord; elim: N {N0} => [//|k IH]; rewrite iterS IH.
  by apply: power_falls => //; apply: Pr_le1.
Qed.

(** Two outputs that differ with probability at most p have nearly the same distribution. *)
Theorem coupled (X Y : W -> T) p E :
  chance (fun w => X w != Y w) <= p -> in_event X E <= in_event Y E + p.
Proof.
  move=> differ; apply: Rle_trans (Rplus_le_compat_l _ _ _ differ).
  rewrite /in_event /chance !Pr_as_sum -sum_add; apply: sum_le => w _; rewrite !inE.
  have := mass_ge0 bits w.
  by case: eqP => [-> | _]; [case: (Y w \in E) | case: (X w \in E); case: (Y w \in E)]; rewrite /=; lra.
Qed.

(** 2. and 5.  X and Y are the natural outputs.  P and Q are what the watched law gives for the same bits: X agrees with
    P and Y with Q but for p.  If P and Q are (eps, delta)-close, the natural outputs are close but for (1 + e^eps) p. *)
Theorem replay_upper (X Y P Q : W -> T) eps delta p :
  chance (fun w => X w != P w) <= p -> chance (fun w => Q w != Y w) <= p ->
  (forall E, in_event P E <= exp eps * in_event Q E + delta) ->
  forall E, in_event X E <= exp eps * in_event Y E + delta + (1 + exp eps) * p.
Proof.
  move=> XP QY PQ E; have := coupled E XP; have := coupled E QY; have := PQ E; have := exp_pos eps; nra.
Qed.

(** 3. A refutation survives what was not seen: an event of the traced law with P0 and Q0 has, for the natural outputs,
    at least P0 - p and at most Q0 + p.  If that breaks (eps, delta)-DP, the code breaks it. *)
Theorem refutation_survives (X Y P Q : W -> T) eps delta p E :
  chance (fun w => P w != X w) <= p -> chance (fun w => Y w != Q w) <= p ->
  exp eps * (in_event Q E + p) + delta < in_event P E - p ->
  ~ (forall E, in_event X E <= exp eps * in_event Y E + delta).
Proof.
  move=> PX YQ broken dpXY; have := dpXY E; have := coupled E PX; have := coupled E YQ.
  have := exp_pos eps; nra.
Qed.
End Trials.

(** 4. Two calls with noise of their own: x then y against y then x costs (2 eps, 2 delta). *)
Theorem two_calls (X : Type) (T : finType) eps delta (near : X -> X -> Prop) (M : X -> dist T) x y :
  dp eps delta near M -> near x y -> near y x -> 0 <= delta ->
  close (eps + eps) (delta + delta) (joint (M x) (fun _ => M y)) (joint (M y) (fun _ => M x)).
Proof. by move=> dpM xy yx d0; apply: composition_pair => //; [apply: dpM | move=> _; apply: dpM]. Qed.

(** No number of replays gives a pure bound: for every p > 0 there are two outputs that agree but for p, of which one
    shows what the other never does.  (A raw count compared with a noisy threshold is such a case.) *)
Theorem replay_not_pure p (p01 : 0 <= p <= 1) : 0 < p ->
  let X (w : bool) := w in let Y (w : bool) := false in
  chance (coin p01) (fun w => X w != Y w) <= p /\
  forall eps, ~ (forall E, in_event (coin p01) X E <= exp eps * in_event (coin p01) Y E).
Proof.
  move=> p0 X Y; split.
    by rewrite /chance Pr_as_sum big_bool !inE /=; lra.
  move=> eps /(_ [set true]); rewrite /in_event /chance !Pr_as_sum !big_bool !inE /=; lra.
Qed.
