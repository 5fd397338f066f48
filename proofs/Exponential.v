(** * The exponential mechanism

    From scores u the output t has probability e^(r u_t) / sum_s e^(r u_s).  The softmax of logits at temperature T is
    the case r = 1/T.

    Main theorems: [exponential_spread] (r times the spread of the change of scores), [exponential_linf] (2 r D),
    [exponential_monotone] (r D), [exponential_cube] (scores in an interval), [exponential_cube_best] and
    [exponential_cube_attained] (its exact loss), [exponential_unbounded]. *)

From Dpassay Require Import Prelude Finite.

Section Exponential.
Variable T : finType.
Hypothesis nonempty : (0 < #|T|)%nat.
Variable r : R.
Hypothesis r_gt0 : 0 < r.

Definition total (u : T -> R) : R := \sum_s exp (r * u s).

Lemma total_gt0 u : 0 < total u.
Proof.
  have /card_gt0P [t _] := nonempty.
  apply: Rlt_le_trans (exp_pos (r * u t)) _; apply: (@sum_ge_term _ (fun s => exp (r * u s))) => s.
  by apply: Rlt_le; apply: exp_pos.
Qed.

Definition choice_mass (u : T -> R) (t : T) : R := exp (r * u t) / total u.

Lemma choice_ge0 u t : 0 <= choice_mass u t.
Proof. by apply: Rlt_le; apply: Rdiv_lt_0_compat; [apply: exp_pos | apply: total_gt0]. Qed.

Lemma choice_sum u : \sum_t choice_mass u t = 1.
Proof.
  rewrite (eq_bigr (fun t => / total u * exp (r * u t))); last by move=> t _; rewrite Rmult_comm.
  by rewrite sum_const_mult Rinv_l //; apply: Rgt_not_eq; apply: total_gt0.
Qed.

Definition exponential (u : T -> R) : dist T := Dist (choice_ge0 u) (choice_sum u).

(** A bound on one output: its weights, and the sums of all weights. *)
Lemma choice_le u v t a b : exp (r * u t) <= exp a * exp (r * v t) -> total v <= exp b * total u ->
  choice_mass u t <= exp (a + b) * choice_mass v t.
Proof.
  move=> weight sum; have u0 := total_gt0 u; have v0 := total_gt0 v; rewrite /choice_mass exp_plus.
  apply: (Rmult_le_reg_r (total u * total v)); first exact: Rmult_lt_0_compat.
  have -> : exp (r * u t) / total u * (total u * total v) = exp (r * u t) * total v by field; lra.
  have -> : exp a * exp b * (exp (r * v t) / total v) * (total u * total v) =
            exp a * exp (r * v t) * (exp b * total u) by field; lra.
  by apply: Rmult_le_compat => //; apply: Rlt_le; [apply: exp_pos |].
Qed.

(** The loss is at most r times the spread of the change: how much more one score moves than another. *)
Theorem exponential_spread S u v :
  (forall t s, (u t - v t) - (u s - v s) <= S) -> close (r * S) 0 (exponential u) (exponential v).
Proof.
  move=> spread; apply/pure_pointwise => t /=.
  have -> : r * S = r * (u t - v t) + r * (S - (u t - v t)) by ring.
  apply: choice_le; first by rewrite -exp_plus; apply: exp_le; lra.
  rewrite /total -sum_const_mult; apply: sum_le => s _; rewrite -exp_plus; apply: exp_le.
  have := spread t s; nra.
Qed.

(** Each score moves by at most D: 2 r D. *)
Definition linf_near (D : R) (u v : T -> R) : Prop := forall t, Rabs (u t - v t) <= D.

Theorem exponential_linf D eps : 2 * r * D <= eps -> dp eps 0 (linf_near D) exponential.
Proof.
  move=> le u v near; apply: (@close_weaken _ (r * (2 * D)) _ 0); [nra | lra |].
  apply: exponential_spread => t s; have := Rabs_def2 _ _ (Rle_lt_trans _ _ _ (near t) (Rlt_plus_1 D)).
  have := near t; have := near s; rewrite /Rabs; do 2!case: Rcase_abs => ?; lra.
Qed.

(** All scores move the same way, by at most D: r D. *)
Definition monotone_near (D : R) (u v : T -> R) : Prop :=
  (forall t, 0 <= u t - v t <= D) \/ (forall t, 0 <= v t - u t <= D).

Theorem exponential_monotone D eps : r * D <= eps -> dp eps 0 (monotone_near D) exponential.
Proof.
  move=> le u v near; apply: (@close_weaken _ (r * D) _ 0); [lra | lra |].
  by apply: exponential_spread => t s; case: near => near; have := near t; have := near s; lra.
Qed.

(** All scores lie in an interval of length w; any two such vectors are neighbours. *)
Definition in_cube (l w : R) (u : T -> R) : Prop := forall t, l <= u t <= l + w.
Definition cube_near (l w : R) (u v : T -> R) : Prop := in_cube l w u /\ in_cube l w v.

Theorem exponential_cube l w eps : 2 * r * w <= eps -> dp eps 0 (cube_near l w) exponential.
Proof.
  move=> le u v [cu cv]; apply: (@close_weaken _ (r * (2 * w)) _ 0); [nra | lra |].
  apply: exponential_spread => t s; have := cu t; have := cu s; have := cv t; have := cv s; lra.
Qed.

(** The best bound for a cube, by the number k of outputs: e^(rw) (1 + (k-1) e^(rw)) / (e^(rw) + k - 1). *)
Definition cube_ratio (w : R) : R :=
  exp (r * w) * (1 + (INR #|T| - 1) * exp (r * w)) / (exp (r * w) + (INR #|T| - 1)).

Lemma others (t : T) (c : R) : \big[Rplus/0]_(s | s != t) c = (INR #|T| - 1) * c.
Proof.
  rewrite big_const; have -> : #|[pred s | s != t]| = #|T|.-1 by rewrite -(cardC1 t).
  have := nonempty; case: #|T| => [//|n] _; rewrite S_INR /=.
  elim: n => [|n IH]; first by rewrite /=; lra.
  by rewrite iterS IH S_INR; lra.
Qed.

Lemma k_ge1 : 0 <= INR #|T| - 1.
Proof. by have := nonempty => /leP /le_INR /=; lra. Qed.

Lemma choice_inverse u t : choice_mass u t = / (1 + \big[Rplus/0]_(s | s != t) exp (r * (u s - u t))).
Proof.
  rewrite /choice_mass /total (bigD1 t) //=.
  have -> : \big[Rplus/0]_(s | s != t) exp (r * u s) =
            exp (r * u t) * \big[Rplus/0]_(s | s != t) exp (r * (u s - u t)).
    by rewrite -sum_const_mult; apply: eq_bigr => s _; rewrite -exp_plus; congr exp; ring.
  set rest := \big[Rplus/0]_(s | s != t) exp (r * (u s - u t)).
  have : 0 <= rest by apply: sum_ge0 => s _; apply: Rlt_le; apply: exp_pos.
  by have := exp_pos (r * u t) => ? ?; field; split; nra.
Qed.

Theorem exponential_cube_best l w u v t : 0 <= w -> cube_near l w u v ->
  exponential u t <= cube_ratio w * exponential v t.
Proof.
  move=> w0 [cu cv]; rewrite /= !choice_inverse; have k1 := k_ge1; have W := exp_pos (r * w).
  set U := \big[Rplus/0]_(s | s != t) exp (r * (u s - u t)); set V := \big[Rplus/0]_(s | s != t) exp (r * (v s - v t)).
  have U_ge : (INR #|T| - 1) * exp (- (r * w)) <= U.
    rewrite -(others t); apply: sum_le => s _; apply: exp_le; have := cu t; have := cu s; nra.
  have V_le : V <= (INR #|T| - 1) * exp (r * w).
    rewrite -(others t); apply: sum_le => s _; apply: exp_le; have := cv t; have := cv s; nra.
  have V_ge : 0 <= V by apply: sum_ge0 => s _; apply: Rlt_le; apply: exp_pos.
  have inv : exp (r * w) * exp (- (r * w)) = 1 by rewrite -exp_plus Rplus_opp_r exp_0.
  have inv0 := exp_pos (- (r * w)).
  have -> : cube_ratio w = (1 + (INR #|T| - 1) * exp (r * w)) / (1 + (INR #|T| - 1) * exp (- (r * w))).
    rewrite /cube_ratio; have -> : exp (- (r * w)) = / exp (r * w) by rewrite exp_Ropp.
    by field; repeat split; nra.
  set a := (INR #|T| - 1) * exp (r * w) in V_le *; set b := (INR #|T| - 1) * exp (- (r * w)) in U_ge *.
  have b0 : 0 <= b by apply: Rmult_le_pos => //; lra.
  apply: (Rle_trans _ (/ (1 + b))); first by apply: Rinv_le_contravar; lra.
  have -> : (1 + a) / (1 + b) * / (1 + V) = / (1 + b) * ((1 + a) * / (1 + V)) by rewrite /Rdiv; ring.
  rewrite -{1}(Rmult_1_r (/ (1 + b))); apply: Rmult_le_compat_l; first by apply: Rlt_le; apply: Rinv_0_lt_compat; lra.
  apply: (Rmult_le_reg_r (1 + V)); first lra.
  by rewrite Rmult_assoc Rinv_l; lra.
Qed.

(** It is attained: one score is highest and the others lowest, against the opposite. *)
Theorem exponential_cube_attained l w (t : T) : 0 <= w ->
  let u s := if s == t then l + w else l in
  let v s := if s == t then l else l + w in
  cube_near l w u v /\ exponential u t = cube_ratio w * exponential v t.
Proof.
  move=> w0 u v; split.
    by split=> s; rewrite /u /v; case: eqP; lra.
  rewrite /= !choice_inverse.
  have -> : \big[Rplus/0]_(s | s != t) exp (r * (u s - u t)) = (INR #|T| - 1) * exp (- (r * w)).
    rewrite -(others t); apply: eq_bigr => s /negbTE neq; rewrite /u neq eqxx; congr exp; ring.
  have -> : \big[Rplus/0]_(s | s != t) exp (r * (v s - v t)) = (INR #|T| - 1) * exp (r * w).
    rewrite -(others t); apply: eq_bigr => s /negbTE neq; rewrite /v neq eqxx; congr exp; ring.
  have k1 := k_ge1; have W := exp_pos (r * w); rewrite /cube_ratio exp_Ropp.
  by field; repeat split; nra.
Qed.
End Exponential.

(** Scores without a bound: no eps holds. *)
Theorem exponential_unbounded (T : finType) r (nonempty : (0 < #|T|)%nat) eps : (1 < #|T|)%nat -> 0 < r ->
  ~ dp eps 0 any_two (exponential nonempty r).
Proof.
  move=> k1 r0 dpM; have /card_gt0P [a _] := nonempty.
  (* With one score ahead by w, the output a is certain but for (k-1) e^(-rw); with that score far behind it is rare. *)
  pose w := (Rabs eps + ln (INR #|T|) + 1) / r.
  have kk : 2 <= INR #|T| by apply: (le_INR 2); apply/leP.
  have lnk : 0 < ln (INR #|T|) by rewrite -ln_1; apply: ln_increasing; lra.
  have a0 := Rabs_pos eps; have le_abs := Rle_abs eps.
  have rw : r * w = Rabs eps + ln (INR #|T|) + 1 by rewrite /w; field; lra.
  pose u (s : T) := if s == a then w else 0; pose v (s : T) := if s == a then 0 else w.
  have := (pure_pointwise eps _ _).1 (dpM u v I) a; rewrite /= !choice_inverse //.
  have -> : \big[Rplus/0]_(s | s != a) exp (r * (u s - u a)) = (INR #|T| - 1) * exp (- (r * w)).
    rewrite -(others nonempty a); apply: eq_bigr => s /negbTE neq.
    by rewrite /u neq eqxx; congr exp; ring.
  have -> : \big[Rplus/0]_(s | s != a) exp (r * (v s - v a)) = (INR #|T| - 1) * exp (r * w).
    rewrite -(others nonempty a); apply: eq_bigr => s /negbTE neq.
    by rewrite /v neq eqxx; congr exp; ring.
  have big : exp eps * INR #|T| < exp (r * w).
    rewrite -{1}(exp_ln (INR #|T|)); last lra.
    by rewrite -exp_plus; apply: exp_increasing; lra.
  have inv : exp (- (r * w)) * exp (r * w) = 1 by rewrite -exp_plus Rplus_opp_l exp_0.
  have e0 := exp_pos (r * w); have i0 := exp_pos (- (r * w)); have eps0 := exp_pos eps.
  have small : exp (- (r * w)) < 1 by rewrite -exp_0; apply: exp_increasing; lra.
  move=> le.
  have := Rmult_le_compat_r (1 + (INR #|T| - 1) * exp (- (r * w))) _ _ ltac:(nra) le.
  rewrite Rinv_l; last by nra.
  have d0 : 0 < 1 + (INR #|T| - 1) * exp (r * w) by nra.
  move=> le'; have := Rmult_le_compat_r _ _ _ (Rlt_le _ _ d0) le'.
  have -> : exp eps * / (1 + (INR #|T| - 1) * exp (r * w)) * (1 + (INR #|T| - 1) * exp (- (r * w))) *
            (1 + (INR #|T| - 1) * exp (r * w)) = exp eps * (1 + (INR #|T| - 1) * exp (- (r * w))) by field; lra.
  have : exp (r * w) <= (INR #|T| - 1) * exp (r * w) by nra.
  have : exp eps * (1 + (INR #|T| - 1) * exp (- (r * w))) <= exp eps * INR #|T|.
    by apply: Rmult_le_compat_l; nra.
  lra.
Qed.
