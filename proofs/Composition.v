(** * Basic composition, adaptive, and group privacy

    [joint P K] draws an output from [P], then another from a law that may depend on the first, and shows both.
    [adaptive next n] draws n outputs, one after the other; the law of each may depend on all before it.

    Main theorems: [basic_composition] (two steps: epsilons and deltas add up), [adaptive_composition] (n steps),
    [times_exact] (n steps of one mechanism with inputs chosen adaptively: n times its exact eps), [training_and_release],
    [group_privacy]. *)

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

(** ** n adaptive steps *)

Section Adaptive.
Variable T : finType.                           (* the outputs of one step *)

(** The outputs of n steps, and the same as a list. *)
Fixpoint history (n : nat) : finType := if n is n'.+1 then [finType of history n' * T] else unit_finType.

Fixpoint past (n : nat) : history n -> seq T :=
  if n is n'.+1 then fun h => rcons (past h.1) h.2 else fun _ => [::].

Lemma size_past n (h : history n) : size (past h) = n.
Proof. by elim: n h => [//|n IH] h; rewrite /= size_rcons IH. Qed.

(** After the outputs h, the next one has the law [next h]. *)
Fixpoint adaptive (next : seq T -> dist T) (n : nat) : dist (history n) :=
  if n is n'.+1 then joint (adaptive next n') (fun h => next (past h)) else certain tt.

Theorem adaptive_pair (eps delta : nat -> R) (K L : seq T -> dist T) n :
  (forall h, close (eps (size h)) (delta (size h)) (K h) (L h)) -> (forall k, 0 <= delta k) ->
  close (\big[Rplus/0]_(k < n) eps k) (\big[Rplus/0]_(k < n) delta k) (adaptive K n) (adaptive L n).
Proof.
  move=> closeKL d0; elim: n => [|n IH].
    by move=> E; rewrite !big_ord0 exp_0 Rmult_1_l Rplus_0_r; apply: Rle_refl.
  rewrite !big_ord_recr /=; apply: composition_pair => // h.
  by have := closeKL (past h); rewrite size_past.
Qed.

(** [M x h] is the step on the input x after the outputs h; the k-th step may have an epsilon and a delta of its own. *)
Theorem adaptive_composition (X : Type) (near : X -> X -> Prop) (eps delta : nat -> R) (M : X -> seq T -> dist T) n :
  (forall h, dp (eps (size h)) (delta (size h)) near (fun x => M x h)) -> (forall k, 0 <= delta k) ->
  dp (\big[Rplus/0]_(k < n) eps k) (\big[Rplus/0]_(k < n) delta k) near (fun x => adaptive (M x) n).
Proof. by move=> dpM d0 x y near_xy; apply: adaptive_pair => // h; apply: dpM. Qed.

(** Steps with the same guarantee: n times epsilon and n times delta. *)
Corollary adaptive_repeated (X : Type) (near : X -> X -> Prop) eps delta (M : X -> seq T -> dist T) n :
  (forall h, dp eps delta near (fun x => M x h)) -> 0 <= delta ->
  dp (INR n * eps) (INR n * delta) near (fun x => adaptive (M x) n).
Proof.
  move=> dpM d0; have := @adaptive_composition X near (fun _ => eps) (fun _ => delta) M n dpM (fun _ => d0).
  by rewrite !sum_const.
Qed.

(** *** One mechanism, n times *)

(** [times(n)] of a pipeline: n steps of the mechanism [M], whose input at each step is any function of the data and of all
    outputs before, such that neighbours give neighbours. *)
Definition times_private (S : Type) (near : S -> S -> Prop) (M : S -> dist T) (n : nat) (eps delta : R) : Prop :=
  forall (X : Type) (near_data : X -> X -> Prop) (input : X -> seq T -> S),
  (forall x y, near_data x y -> forall h, near (input x h) (input y h)) ->
  dp eps delta near_data (fun x => adaptive (fun h => M (input x h)) n).

(** n times the same output. *)
Fixpoint same (t : T) (n : nat) : history n := if n is n'.+1 then (same t n', t) else tt.

Lemma adaptive_same (P : dist T) t n : adaptive (fun _ => P) n (same t n) = P t ^ n.
Proof. by elim: n => [|n IH]; rewrite /= ?/certain_mass ?eqxx // /joint_mass /= IH Rmult_comm. Qed.

Lemma pow_le_inv a b n : (0 < n)%nat -> 0 <= b -> a ^ n <= b ^ n -> a <= b.
Proof.
  move=> n0 b0 le; apply: Rnot_lt_le => lt; have : b ^ n < a ^ n; last lra.
  case: n n0 {le} => [//|n] _; elim: n => [|n IH]; first by rewrite /= !Rmult_1_r.
  have p0 : 0 <= b ^ n.+1 by apply: pow_le.
  by rewrite -![_ ^ n.+2]tech_pow_Rmult; nra.
Qed.

Theorem times_exact (S : Type) (near : S -> S -> Prop) (M : S -> dist T) n eps : (0 < n)%nat ->
  (times_private near M n eps 0 <-> dp (eps / INR n) 0 near M).
Proof.
  move=> n0; have N0 : 0 < INR n by apply: lt_0_INR; apply/ltP.
  split=> [priv u v near_uv | dpM X near_data input nears].
  - pose both_inputs (b : bool) (_ : seq T) := if b then u else v.
    have := priv bool (fun b c => b = true /\ c = false) both_inputs.
    move=> /(_ (fun b c bc h => ltac:(by case: bc => -> ->)) true false (conj erefl erefl)) closeUV.
    apply/pure_pointwise => t.
    have : adaptive (fun _ => M u) n (same t n) <= exp eps * adaptive (fun _ => M v) n (same t n).
      exact: (pure_pointwise _ _ _).1 closeUV (same t n).
    rewrite !adaptive_same => le.
    apply: (@pow_le_inv _ _ n) => //.
      by apply: Rmult_le_pos; [apply: Rlt_le; apply: exp_pos | apply: mass_ge0].
    rewrite Rpow_mult_distr; suff -> : exp (eps / INR n) ^ n = exp eps by [].
    by rewrite -Rpower_pow; [rewrite /Rpower ln_exp; congr exp; field; lra | apply: exp_pos].
  - have := @adaptive_repeated X near_data (eps / INR n) 0 (fun x h => M (input x h)) n.
    rewrite Rmult_0_r (_ : INR n * (eps / INR n) = eps); last by field; lra.
    by apply=> [h x y /nears near_xy|]; [apply: dpM | lra].
Qed.

(** With delta: n times each. *)
Theorem times_upper (S : Type) (near : S -> S -> Prop) (M : S -> dist T) n eps delta : 0 <= delta ->
  dp eps delta near M -> times_private near M n (INR n * eps) (INR n * delta).
Proof.
  by move=> d0 dpM X near_data input nears; apply: adaptive_repeated => // h x y /nears near_xy; apply: dpM.
Qed.
End Adaptive.

(** Weights w are trained on a corpus; then n texts are rewritten with them, each independently, and all is published.  A unit
    of the corpus is added or removed, and all texts are replaced by others. *)
Theorem training_and_release (X Y : Type) (W T : finType) (near : X -> X -> Prop) (train : X -> dist W)
    (rewrite_text : W -> Y -> dist T) eps1 delta1 eps2 delta2 n (texts texts' : nat -> Y) x x' :
  dp eps1 delta1 near train -> (forall w, dp eps2 delta2 any_two (rewrite_text w)) -> 0 <= delta2 -> near x x' ->
  close (eps1 + INR n * eps2) (delta1 + INR n * delta2)
    (joint (train x) (fun w => adaptive (fun h => rewrite_text w (texts (size h))) n))
    (joint (train x') (fun w => adaptive (fun h => rewrite_text w (texts' (size h))) n)).
Proof.
  move=> dp1 dp2 d0 near_x; apply: composition_pair; [exact: dp1 | move=> w | by apply: Rmult_le_pos; [apply: pos_INR |]].
  rewrite -!sum_const; apply: (@adaptive_pair T (fun _ => eps2) (fun _ => delta2)) => // h.
  exact: dp2.
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

(** The sum in closed form, and the simpler bound k e^((k-1) eps). *)
Lemma growth_closed eps k : (exp eps - 1) * growth eps k = exp (INR k * eps) - 1.
Proof.
  elim: k => [|k IH]; first by rewrite /= Rmult_0_l exp_0; ring.
  rewrite S_INR Rmult_plus_distr_r Rmult_1_l exp_plus /=; nra.
Qed.

Lemma growth_simple eps k : 0 <= eps -> growth eps k.+1 <= INR k.+1 * exp (INR k * eps).
Proof.
  move=> eps0; have e1 : 1 <= exp eps by rewrite -exp_0; apply: exp_le.
  elim: k => [|k IH]; first by rewrite /= Rmult_0_l exp_0; lra.
  have -> : growth eps k.+2 = 1 + exp eps * growth eps k.+1 by [].
  have one : 1 <= exp (INR k.+1 * eps) by rewrite -exp_0; apply: exp_le; apply: Rmult_le_pos => //; apply: pos_INR.
  have := Rmult_le_compat_l (exp eps) _ _ (Rlt_le _ _ (exp_pos eps)) IH.
  have -> : exp eps * (INR k.+1 * exp (INR k * eps)) = INR k.+1 * exp (INR k.+1 * eps).
    by rewrite [INR k.+1 * eps](_ : _ = eps + INR k * eps) ?exp_plus; [ring | rewrite S_INR; ring].
  by rewrite (S_INR k.+1); lra.
Qed.

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

(** Each coordinate in a set of its own: probabilities multiply. *)
Lemma product_box (P : 'I_n -> dist T) (E : 'I_n -> {set T}) :
  Pr (product P) [set t : {ffun 'I_n -> T} | [forall i, t i \in E i]] = \prod_i Pr (P i) (E i).
Proof.
  rewrite /Pr bigA_distr_big_dep; apply: eq_bigl => t; rewrite inE; apply/forallP/familyP => inE_ i; exact: inE_.
Qed.

(** n times the same guarantee: n times eps.  Each step may have inputs of its own. *)
Theorem repeated_pure eps (P Q : 'I_n -> dist T) :
  (forall i, close eps 0 (P i) (Q i)) -> close (INR n * eps) 0 (product P) (product Q).
Proof.
  move=> closePQ; apply/pure_pointwise => t; rewrite -sum_const -exp_sum /= /product_mass -big_split.
  apply: prod_le => i; split; first exact: mass_ge0.
  exact: (pure_pointwise eps (P i) (Q i)).1 (closePQ i) (t i).
Qed.
End Product.
