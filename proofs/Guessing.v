(** * The guessing game

    One of finitely many inputs is drawn uniformly, the mechanism is run on it, and a rule sees the output and names an
    input or abstains.

    Main theorems: [guess_given_output] (whatever the output), [guessing_game], [two_inputs] (1 / (1 + e^-eps)),
    [two_inputs_delta], [guessing_delta] and [always_guessing] (many inputs, with delta). *)

From Dpassay Require Import Prelude Finite.

Section Game.
Variables J T : finType.                       (* the inputs, and the outputs *)
Hypothesis nonempty : (0 < #|J|)%nat.
Variable M : J -> dist T.
Variable rule : T -> option J.

Definition right : R := \sum_j (/ INR #|J| * \sum_t (M j t * (if rule t == Some j then 1 else 0))).
Definition guessed : R := \sum_j (/ INR #|J| * \sum_t (M j t * (if rule t is Some _ then 1 else 0))).

Lemma sum_const_type (c : R) : \sum_(j in J) c = INR #|J| * c.
Proof.
  rewrite big_const; elim: #|_| => [|k IH]; first by rewrite /= Rmult_0_l.
  by rewrite iterS IH S_INR; lra.
Qed.

(** Given the output t, the input j has a probability of at most e^eps / (e^eps + m - 1), m inputs in all. *)
Theorem guess_given_output eps t j : 0 <= eps -> dp eps 0 any_two M ->
  M j t <= exp eps / (exp eps + INR #|J| - 1) * \sum_k M k t.
Proof.
  move=> eps0 dpM; have e1 : 1 <= exp eps by rewrite -exp_0; apply: exp_le.
  have m1 : 1 <= INR #|J| by have := nonempty => /leP /le_INR.
  have le k : M j t <= exp eps * M k t := (pure_pointwise eps (M j) (M k)).1 (dpM j k I) t.
  have : exp eps * M j t + (INR #|J| - 1) * M j t <= exp eps * \sum_k M k t.
    have -> : exp eps * M j t + (INR #|J| - 1) * M j t = (exp eps - 1) * M j t + \sum_(k in J) M j t.
      by rewrite sum_const_type; ring.
    rewrite [X in _ + X](bigD1 j) //= [X in _ <= exp eps * X](bigD1 j) //= Rmult_plus_distr_l -sum_const_mult.
    set a := \big[Rplus/0]_(_ | _) _; set b := \big[Rplus/0]_(_ | _) _.
    suff : a <= b by lra.
    by apply: sum_le.
  move=> sum; apply: (Rmult_le_reg_r (exp eps + INR #|J| - 1)); first lra.
  by rewrite /Rdiv Rmult_assoc (Rmult_comm (\sum_k _)) -Rmult_assoc (Rmult_assoc (exp eps)) Rinv_l; lra.
Qed.

(** So at most this share of the guesses is right, whatever the rule. *)
Theorem guessing_game eps : 0 <= eps -> dp eps 0 any_two M ->
  right <= exp eps / (exp eps + INR #|J| - 1) * guessed.
Proof.
  move=> eps0 dpM; rewrite /right /guessed !sum_const_mult.
  set c := exp eps / _; have m0 : 0 <= / INR #|J|.
    by apply: Rlt_le; apply: Rinv_0_lt_compat; apply: lt_0_INR; apply/ltP.
  rewrite -Rmult_assoc (Rmult_comm c) Rmult_assoc; apply: Rmult_le_compat_l => //.
  rewrite exchange_big [X in _ <= c * X]exchange_big -sum_const_mult; apply: sum_le => t _.
  case: (rule t) => [j|]; last first.
    by rewrite !big1 => *; rewrite /=; lra.
  rewrite (bigD1 j) //= eqxx big1 => [|k neq]; last first.
    by case: eqP => [[jk]|_]; [rewrite jk eqxx in neq | lra].
  rewrite Rplus_0_r Rmult_1_r; rewrite (eq_bigr (fun k => M k t)); last by move=> *; lra.
  exact: guess_given_output.
Qed.

(** ** With delta *)

Lemma sum_others (i : J) (c : R) : \big[Rplus/0]_(j | j != i) c = (INR #|J| - 1) * c.
Proof.
  have -> : \big[Rplus/0]_(j | j != i) c = \big[Rplus/0]_(j | (j \in J) && (j != i)) c by apply: eq_bigl => j; rewrite inE.
  by have := sum_const_type c; rewrite (bigD1 i) //=; lra.
Qed.

Definition named (j : J) : {set T} := [set t | rule t == Some j].

Lemma right_sum : INR #|J| * right = \sum_j Pr (M j) (named j).
Proof.
  have m0 : 0 < INR #|J| by apply: lt_0_INR; apply/ltP.
  rewrite /right sum_const_mult -Rmult_assoc Rinv_r ?Rmult_1_l; last lra.
  by apply: eq_bigr => j _; rewrite Pr_as_sum; apply: eq_bigr => t _; rewrite inE.
Qed.

Lemma guessed_sum : INR #|J| * guessed = \sum_j (\sum_i Pr (M j) (named i)).
Proof.
  have m0 : 0 < INR #|J| by apply: lt_0_INR; apply/ltP.
  rewrite /guessed sum_const_mult -Rmult_assoc Rinv_r ?Rmult_1_l; last lra.
  apply: eq_bigr => j _; rewrite (eq_bigr _ (fun i _ => Pr_as_sum (M j) (named i))) exchange_big; apply: eq_bigr => t _.
  rewrite sum_const_mult; congr (_ * _); case E : (rule t) => [i|].
  - rewrite (bigD1 i) //= inE E eqxx big1 => [|k neq]; first by rewrite Rplus_0_r.
    by rewrite inE E; case: eqP => // -[ik]; rewrite ik eqxx in neq.
  - by rewrite big1 // => i _; rewrite inE E.
Qed.

(** m inputs: the share of right guesses exceeds e^eps / (m - 1) times that of wrong ones by delta at most. *)
Theorem guessing_delta eps delta : (1 < #|J|)%nat -> dp eps delta (fun i j => i <> j) M ->
  right - exp eps / (INR #|J| - 1) * (guessed - right) <= delta.
Proof.
  move=> two dpM; have m1 : 1 < INR #|J| by apply: (lt_INR 1); apply/ltP.
  have pairs i : (INR #|J| - 1) * Pr (M i) (named i) <=
                 \big[Rplus/0]_(j | j != i) (exp eps * Pr (M j) (named i) + delta).
    by rewrite -(sum_others i); apply: sum_le => j /eqP neq; apply: dpM => ij; apply: neq.
  have wrong : \sum_i (\big[Rplus/0]_(j | j != i) Pr (M j) (named i)) = INR #|J| * (guessed - right).
    rewrite Rmult_minus_distr_l right_sum guessed_sum [X in _ = X - _]exchange_big /=.
    suff : \sum_i (\big[Rplus/0]_(j | j != i) Pr (M j) (named i)) + \sum_j Pr (M j) (named j) =
           \sum_i (\sum_j Pr (M j) (named i)) by lra.
    by rewrite -sum_add; apply: eq_bigr => i _; rewrite [X in _ = X](bigD1 i) //= Rplus_comm.
  have others : \sum_(i in J) (\big[Rplus/0]_(j | j != i) delta) = INR #|J| * ((INR #|J| - 1) * delta).
    by rewrite -sum_const_type; apply: eq_bigr => i _; rewrite sum_others.
  have : (INR #|J| - 1) * (INR #|J| * right) <= exp eps * (INR #|J| * (guessed - right)) + INR #|J| * ((INR #|J| - 1) * delta).
    rewrite right_sum -wrong -others -!sum_const_mult -sum_add; apply: sum_le => i _.
    by apply: Rle_trans (pairs i) _; rewrite sum_add sum_const_mult; apply: Rle_refl.
  move=> all; apply: (Rmult_le_reg_l (INR #|J| * (INR #|J| - 1))); first by apply: Rmult_lt_0_compat; lra.
  have -> : INR #|J| * (INR #|J| - 1) * (right - exp eps / (INR #|J| - 1) * (guessed - right)) =
            (INR #|J| - 1) * (INR #|J| * right) - exp eps * (INR #|J| * (guessed - right)) by field; lra.
  lra.
Qed.

(** A rule that always names an input is right with probability at most (e^eps + (m-1) delta) / (e^eps + m - 1). *)
Theorem always_guessing eps delta : (1 < #|J|)%nat -> dp eps delta (fun i j => i <> j) M -> guessed = 1 ->
  right <= (exp eps + (INR #|J| - 1) * delta) / (exp eps + INR #|J| - 1).
Proof.
  move=> two dpM all; have m1 : 1 < INR #|J| by apply: (lt_INR 1); apply/ltP.
  have := guessing_delta two dpM; rewrite all; have e0 := exp_pos eps => le.
  have {}le := Rmult_le_compat_r (INR #|J| - 1) _ _ ltac:(lra) le.
  apply: (Rmult_le_reg_r (exp eps + INR #|J| - 1)); first lra.
  have -> : (exp eps + (INR #|J| - 1) * delta) / (exp eps + INR #|J| - 1) * (exp eps + INR #|J| - 1) =
            exp eps + (INR #|J| - 1) * delta by field; lra.
  have : (right - exp eps / (INR #|J| - 1) * (1 - right)) * (INR #|J| - 1) =
         right * (INR #|J| - 1) - exp eps * (1 - right) by field; lra.
  lra.
Qed.
End Game.

(** Two inputs: the share of right guesses is at most 1 / (1 + e^-eps). *)
Theorem two_inputs (T : finType) eps (M : bool -> dist T) (rule : T -> option bool) :
  0 <= eps -> dp eps 0 any_two M -> right M rule <= / (1 + exp (- eps)) * guessed M rule.
Proof.
  move=> eps0 dpM; have := @guessing_game bool_finType T _ M rule eps eps0 dpM.
  rewrite card_bool /= => /(_ isT); have e0 := exp_pos eps.
  have -> : exp eps / (exp eps + (1 + 1) - 1) = / (1 + exp (- eps)); last by [].
  by rewrite exp_Ropp; field; split; nra.
Qed.

(** With delta and a rule that always answers: at most (e^eps + delta) / (1 + e^eps) of the guesses are right. *)
Theorem two_inputs_delta (T : finType) eps delta (P Q : dist T) (E : {set T}) :
  close eps delta P Q -> close eps delta Q P ->
  / 2 * Pr P E + / 2 * Pr Q (~: E) <= (exp eps + delta) / (1 + exp eps).
Proof.
  move=> closePQ closeQP; have := closePQ E; have := closeQP (~: E).
  have sum (W : dist T) : Pr W E + Pr W (~: E) = 1.
    rewrite -[RHS](mass_sum W) !Pr_as_sum -sum_add; apply: eq_bigr => t _.
    by rewrite inE; case: (t \in E) => /=; lra.
  have := sum P; have := sum Q; have e0 := exp_pos eps => sQ sP leQP lePQ.
  apply: (Rmult_le_reg_r (1 + exp eps)); first lra.
  have -> : (exp eps + delta) / (1 + exp eps) * (1 + exp eps) = exp eps + delta by field; lra.
  nra.
Qed.
