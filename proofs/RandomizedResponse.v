(** * Randomized response on two or more categories

    The true category is kept with probability [p]; otherwise one of the others is drawn uniformly.

    Main theorems: [response_exact] (the exact eps), [response_delta] (the exact delta at every eps >= 0). *)

From Dpassay Require Import Prelude Finite.

Section Response.
Variable T : finType.                       (* the categories *)
Hypothesis two : (1 < #|T|)%nat.
Variable p : R.
Hypothesis p01 : 0 <= p <= 1.

(** The probability of each other category. *)
Definition other : R := (1 - p) / (INR #|T| - 1).

Lemma size_gt1 : 0 < INR #|T| - 1.
Proof. have : INR 1 < INR #|T| by apply: lt_INR; apply/ltP. by rewrite /=; lra. Qed.

Definition response_mass (x t : T) : R := if t == x then p else other.

Lemma other_ge0 : 0 <= other.
Proof. apply: Rmult_le_pos; first lra. by apply: Rlt_le; apply: Rinv_0_lt_compat; apply: size_gt1. Qed.

Lemma response_ge0 x t : 0 <= response_mass x t.
Proof. by rewrite /response_mass; case: eqP => _; [lra | apply: other_ge0]. Qed.

Lemma response_sum x : \sum_t response_mass x t = 1.
Proof.
  rewrite (bigD1 x) //= /response_mass eqxx.
  rewrite (eq_bigr (fun _ => other)); last by move=> t /negbTE ->.
  have -> : \big[Rplus/0]_(t | t != x) other = (INR #|T| - 1) * other.
    rewrite big_const; have -> : #|[pred t | t != x]| = #|T|.-1 by rewrite -(cardC1 x).
    have := two; case: #|T| => [//|n] _; rewrite S_INR /=.
    elim: n => [|n IH]; first by rewrite /=; lra.
    by rewrite iterS IH S_INR; lra.
  by rewrite /other; have := size_gt1; move=> ?; field; lra.
Qed.

Definition response (x : T) : dist T := Dist (response_ge0 x) (response_sum x).

Lemma another (x : T) : exists y, y != x.
Proof.
  have : (0 < #|predC1 x|)%nat by rewrite cardC1; have := two; case: #|T| => // -[].
  by case/card_gt0P=> y; rewrite inE => ?; exists y.
Qed.

(** If the truth is the likeliest answer, eps-DP holds if and only if p <= e^eps (1-p)/(k-1). *)
Theorem response_exact eps : (0 < #|T|)%nat -> other <= p -> 0 <= eps ->
  (dp eps 0 any_two response <-> p <= exp eps * other).
Proof.
  move=> /card_gt0P [x _] le_p eps0; split=> [dpM | le y z _].
  - have [y neq] := another x.
    have := (pure_pointwise eps (response x) (response y)).1 (dpM x y I) x.
    by rewrite /= /response_mass eqxx eq_sym (negbTE neq).
  - apply/pure_pointwise => t /=; rewrite /response_mass.
    have e1 : 1 <= exp eps by rewrite -exp_0; apply: exp_le.
    have := other_ge0; by do 2!case: eqP => _ //; nra.
Qed.

(** In logarithms: the exact eps is ln(p (k-1) / (1-p)). *)
Corollary response_epsilon eps : (0 < #|T|)%nat -> other <= p -> p < 1 -> 0 <= eps ->
  (dp eps 0 any_two response <-> ln (p * (INR #|T| - 1) / (1 - p)) <= eps).
Proof.
  move=> nonempty le_p p1 eps0; rewrite response_exact //.
  have k := size_gt1; have o0 : 0 < other by apply: Rmult_lt_0_compat; [lra | apply: Rinv_0_lt_compat].
  have -> : p * (INR #|T| - 1) / (1 - p) = p / other by rewrite /other; field; lra.
  rewrite ln_le_exp; last by apply: Rmult_lt_0_compat; [lra | apply: Rinv_0_lt_compat].
  split=> le.
  - by apply: (Rmult_le_reg_r other) => //; rewrite /Rdiv Rmult_assoc Rinv_l ?Rmult_1_r; lra.
  - have := Rmult_le_compat_r other _ _ (Rlt_le _ _ o0) le.
    by rewrite /Rdiv Rmult_assoc Rinv_l ?Rmult_1_r; lra.
Qed.

(** The exact delta at every eps >= 0. *)
Theorem response_delta eps delta : (0 < #|T|)%nat -> other <= p -> 0 <= eps -> 0 <= delta ->
  (dp eps delta any_two response <-> p - exp eps * other <= delta).
Proof.
  move=> /card_gt0P [x _] le_p eps0 d0; split=> [dpM | le y z _].
  - have [y neq] := another x.
    have := dpM x y I [set x].
    by rewrite !Pr_set1 /= /response_mass eqxx eq_sym (negbTE neq); lra.
  - apply/hockey_stick; apply: (Rle_trans _ (Rmax 0 (p - exp eps * other))).
      2: by apply: Rmax_lub.
    have e1 : 1 <= exp eps by rewrite -exp_0; apply: exp_le.
    have o0 := other_ge0.
    rewrite /hockey (bigD1 y) //= big1 ?Rplus_0_r.
    + rewrite /response_mass eqxx; apply: Rmax_lub; first exact: Rmax_l.
      case: eqP => _; last exact: Rmax_r.
      apply: Rle_trans (Rmax_l _ _); nra.
    + move=> t /negbTE neq; rewrite /response_mass neq Rmax_left //.
      by case: eqP => _; nra.
Qed.

(** The truth is told always: no eps holds. *)
Corollary response_certain eps : (0 < #|T|)%nat -> p = 1 -> ~ dp eps 0 any_two response.
Proof.
  move=> /card_gt0P [x _] p1; have [y neq] := another x.
  apply: (@different_outputs_no_pure_dp _ _ eps any_two response x y x) => //=; rewrite /response_mass.
  - by rewrite eqxx; lra.
  - by rewrite eq_sym (negbTE neq) /other p1 /Rdiv; lra.
Qed.
End Response.
