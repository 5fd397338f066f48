(** * The guessing game

    One of finitely many inputs is drawn uniformly, the mechanism is run on it, and a rule sees the output and names an
    input or abstains.

    Main theorems: [guess_given_output] (whatever the output), [guessing_game], [two_inputs] (1 / (1 + e^-eps)),
    [two_inputs_delta]. *)

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
