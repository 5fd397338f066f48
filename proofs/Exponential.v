(** * The exponential mechanism

    From scores u the output t has probability e^(r u_t) / sum_s e^(r u_s).  The softmax of logits at temperature T is
    the case r = 1/T.

    Main theorems: [exponential_spread] (r times the spread of the change of scores), [exponential_linf_exact] (2 r D),
    [exponential_monotone_exact] and [exponential_l1_exact] (r D), [exponential_l2] (sqrt 2 r D), [exponential_cube_exact]
    (scores in an interval), [exponential_unbounded], [exponential_repeated]. *)

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

(** The change of scores is bounded in l1: r D.  In l2: sqrt 2 r D. *)
Definition l1_scores (D : R) (u v : T -> R) : Prop := \sum_t Rabs (u t - v t) <= D.
Definition l2_scores (D : R) (u v : T -> R) : Prop := \sum_t ((u t - v t) * (u t - v t)) <= D * D.

Lemma sum_ge_two (f : T -> R) s t : s != t -> (forall i, 0 <= f i) -> f s + f t <= \sum_i f i.
Proof.
  move=> neq f0; rewrite (bigD1 s) //= (bigD1 t) /=; last by rewrite eq_sym.
  set rest := (X in _ + (_ + X)); have : 0 <= rest by apply: sum_ge0.
  lra.
Qed.

Theorem exponential_l1 D eps : 0 <= D -> r * D <= eps -> dp eps 0 (l1_scores D) exponential.
Proof.
  move=> D0 le u v near; apply: (@close_weaken _ (r * D) _ 0); [lra | lra |].
  apply: exponential_spread => t s; case: (eqVneq t s) => [-> | neq]; first lra.
  have := sum_ge_two neq (fun i => Rabs_pos (u i - v i)); move: near; rewrite /l1_scores.
  by have := Rle_abs (u t - v t); have := Rle_abs (- (u s - v s)); rewrite Rabs_Ropp; lra.
Qed.

Theorem exponential_l2 D eps : 0 <= D -> r * (sqrt 2 * D) <= eps -> dp eps 0 (l2_scores D) exponential.
Proof.
  move=> D0 le u v near; apply: (@close_weaken _ (r * (sqrt 2 * D)) _ 0); [lra | lra |].
  have s0 := sqrt_pos 2; have s2 : sqrt 2 * sqrt 2 = 2 by apply: sqrt_sqrt; lra.
  apply: exponential_spread => t s; case: (eqVneq t s) => [-> | neq]; first by nra.
  have := sum_ge_two neq (fun i => Rle_0_sqr (u i - v i)); rewrite /Rsqr; move: near; rewrite /l2_scores.
  set a := u t - v t; set b := u s - v s => near two; apply: Rsqr_incr_0_var; last by nra.
  rewrite /Rsqr; have : 0 <= (a + b) * (a + b) by apply: Rle_0_sqr.
  have -> : sqrt 2 * D * (sqrt 2 * D) = sqrt 2 * sqrt 2 * (D * D) by ring.
  rewrite s2; nra.
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

(** So the exact eps of a cube is the logarithm of that ratio. *)
Theorem exponential_cube_exact l w eps : 0 <= w -> (dp eps 0 (cube_near l w) exponential <-> cube_ratio w <= exp eps).
Proof.
  move=> w0; have /card_gt0P [t _] := nonempty; split=> [dpM | le u v near].
  - have [near same] := exponential_cube_attained l t w0.
    have := (pure_pointwise _ _ _).1 (dpM _ _ near) t; rewrite same => le.
    apply: Rmult_le_reg_r le; apply: Rdiv_lt_0_compat; [exact: exp_pos | exact: total_gt0].
  - apply/pure_pointwise => s; apply: Rle_trans (exponential_cube_best s w0 near) _.
    by apply: Rmult_le_compat_r => //; apply: mass_ge0.
Qed.

(** Of two outputs it is r w. *)
Theorem exponential_two_exact l w eps : #|T| = 2%nat -> 0 <= w -> (dp eps 0 (cube_near l w) exponential <-> r * w <= eps).
Proof.
  move=> two w0; rewrite exponential_cube_exact //; have e0 := exp_pos (r * w).
  have -> : cube_ratio w = exp (r * w) by rewrite /cube_ratio two /=; field; lra.
  split; [exact: exp_le_inv | exact: exp_le].
Qed.

(** ** The bounds for queries are exact *)

(** One score moves by a and all others by b, wherever they are before: the loss comes as close to r (a - b) as wanted. *)
Lemma not_less (t : T) a b eps : (1 < #|T|)%nat -> eps < r * (a - b) ->
  exists v, ~ close eps 0 (exponential (fun s => v s + (if s == t then a else b))) (exponential v).
Proof.
  move=> two lt; set x := exp (eps - r * (a - b)); have x0 := exp_pos (eps - r * (a - b)).
  have x1 : x < 1 by rewrite -exp_0; apply: exp_increasing; lra.
  have e0 := exp_pos eps; have n0 : 1 <= INR #|T| - 1.
    by have := le_INR 2 #|T| ltac:(by apply/leP); rewrite /=; lra.
  pose B := exp eps / (1 - x); have B0 : 0 < B by apply: Rdiv_lt_0_compat; lra.
  have [c rc] : exists c, B = exp (r * c).
    by exists (ln B / r); rewrite (_ : r * (ln B / r) = ln B) ?exp_ln //; field; lra.
  pose v (s : T) := if s == t then 0 else c.
  exists v => /pure_pointwise /(_ t) /=; rewrite !choice_inverse !eqxx.
  have -> : \big[Rplus/0]_(s | s != t) exp (r * (v s + (if s == t then a else b) - (v t + a))) =
            (INR #|T| - 1) * (B * exp (- (r * (a - b)))).
    rewrite -(others t); apply: eq_bigr => s /negbTE neq; rewrite /v neq eqxx rc -exp_plus; congr exp; ring.
  have -> : \big[Rplus/0]_(s | s != t) exp (r * (v s - v t)) = (INR #|T| - 1) * B.
    rewrite -(others t); apply: eq_bigr => s /negbTE neq; rewrite /v neq eqxx rc; congr exp; ring.
  have y0 := exp_pos (- (r * (a - b))); set k := INR #|T| - 1 in n0 *; set y := exp _ in y0 *.
  have xy : x = exp eps * y by rewrite /x /y -exp_plus; congr exp; ring.
  have kB : 0 < k * B by apply: Rmult_lt_0_compat; lra.
  have d0 : 0 < 1 + k * (B * y) by have := Rmult_lt_0_compat _ _ kB y0; lra.
  move=> le; have := Rmult_le_compat_r ((1 + k * (B * y)) * (1 + k * B)) _ _ ltac:(nra) le.
  have -> : / (1 + k * (B * y)) * ((1 + k * (B * y)) * (1 + k * B)) = 1 + k * B by field; lra.
  have -> : exp eps * / (1 + k * B) * ((1 + k * (B * y)) * (1 + k * B)) = exp eps + k * B * (exp eps * y) by field; lra.
  rewrite -xy => bound; have Bx : B * (1 - x) = exp eps by rewrite /B; field; lra.
  have : k * (B * (1 - x)) <= exp eps - 1 by lra.
  rewrite Bx; nra.
Qed.

Theorem exponential_linf_exact D eps : (1 < #|T|)%nat -> 0 <= D ->
  (dp eps 0 (linf_near D) exponential <-> 2 * r * D <= eps).
Proof.
  move=> two D0; split=> [dpM | le]; last exact: exponential_linf.
  have /card_gt0P [t _] := nonempty; apply: Rnot_lt_le => lt.
  have [v] := @not_less t D (- D) eps two ltac:(lra); apply; apply: dpM => s.
  by rewrite (_ : v s + _ - v s = if s == t then D else - D); [case: eqP => _; rewrite ?Rabs_Ropp Rabs_right; lra | lra].
Qed.

Theorem exponential_monotone_exact D eps : (1 < #|T|)%nat -> 0 <= D ->
  (dp eps 0 (monotone_near D) exponential <-> r * D <= eps).
Proof.
  move=> two D0; split=> [dpM | le]; last exact: exponential_monotone.
  have /card_gt0P [t _] := nonempty; apply: Rnot_lt_le => lt.
  have [v] := @not_less t D 0 eps two ltac:(lra); apply; apply: dpM; left=> s; case: eqP => _; lra.
Qed.

Theorem exponential_l1_exact D eps : (1 < #|T|)%nat -> 0 <= D ->
  (dp eps 0 (l1_scores D) exponential <-> r * D <= eps).
Proof.
  move=> two D0; split=> [dpM | le]; last exact: exponential_l1.
  have /card_gt0P [t _] := nonempty; apply: Rnot_lt_le => lt.
  have [v] := @not_less t D 0 eps two ltac:(lra); apply; apply: dpM.
  rewrite /l1_scores (bigD1 t) //= big1 => [|s /negbTE ->]; last by rewrite Rplus_0_r Rminus_eq_0 Rabs_R0.
  by rewrite eqxx (_ : v t + D - v t = D) ?Rabs_right; lra.
Qed.
End Exponential.

(** Scores that are repeated n times: the choice of a copy shows nothing more. *)
Theorem exponential_repeated (T : finType) r (nonempty : (0 < #|T|)%nat) n
    (some : (0 < #|[finType of 'I_n * T]|)%nat) eps (u v : T -> R) : (0 < n)%nat ->
  (close eps 0 (exponential some r (fun it => u it.2)) (exponential some r (fun it => v it.2)) <->
   close eps 0 (exponential nonempty r u) (exponential nonempty r v)).
Proof.
  move=> n0; have N0 : 0 < INR n by apply: lt_0_INR; apply/ltP.
  have mass w it : exponential some r (fun it => w it.2) it = / INR n * exponential nonempty r w it.2.
    rewrite /= /choice_mass /total -(pair_bigA _ (fun (i : 'I_n) t => exp (r * w t))) /= sum_const.
    by have := total_gt0 nonempty r w; rewrite /total => ?; field; lra.
  have i0 := Rinv_0_lt_compat _ N0; rewrite !pure_pointwise; split=> le => [t | it].
  - have := le (Ordinal n0, t); rewrite !mass /= => le'; apply: (Rmult_le_reg_l (/ INR n)) => //; lra.
  - rewrite !mass; have := Rmult_le_compat_l _ _ _ (Rlt_le _ _ i0) (le it.2); lra.
Qed.

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
