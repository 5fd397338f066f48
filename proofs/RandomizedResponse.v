(** * Randomized response on two or more categories

    The true category is kept with probability [p]; otherwise one of the others is drawn uniformly.

    Main theorems: [response_exact] and [response_epsilon] (the exact eps), [response_delta] (the exact delta at every
    eps >= 0), [hashed_exact] (the same behind a hash). *)

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

(** eps-DP holds if and only if no answer is more than e^eps times as likely for one category as for another. *)
Theorem response_exact eps : 0 <= eps ->
  (dp eps 0 any_two response <-> p <= exp eps * other /\ other <= exp eps * p).
Proof.
  move=> eps0; have /card_gt0P [x _] := ltnW two; split=> [dpM | le y z _].
  - have [y neq] := another x.
    have le := (pure_pointwise eps (response x) (response y)).1 (dpM x y I).
    have := le x; have := le y; rewrite /= /response_mass !eqxx (negbTE neq) eq_sym (negbTE neq); lra.
  - apply/pure_pointwise => t /=; rewrite /response_mass.
    have e1 : 1 <= exp eps by rewrite -exp_0; apply: exp_le.
    have := other_ge0; by do 2!case: eqP => _ //; nra.
Qed.

(** In logarithms: the exact eps is |ln(p (k-1) / (1-p))|. *)
Corollary response_epsilon eps : 0 < p < 1 -> 0 <= eps ->
  (dp eps 0 any_two response <-> Rabs (ln (p * (INR #|T| - 1) / (1 - p))) <= eps).
Proof.
  move=> p_in eps0; rewrite response_exact //.
  have k := size_gt1; have o0 : 0 < other by apply: Rmult_lt_0_compat; [lra | apply: Rinv_0_lt_compat].
  have -> : p * (INR #|T| - 1) / (1 - p) = p / other by rewrite /other; field; lra.
  have one a b : 0 < a -> 0 < b -> (a <= exp eps * b <-> ln (a / b) <= eps).
    move=> a0 b0; rewrite ln_le_exp; last exact: Rdiv_lt_0_compat.
    split=> le; first by apply: (Rmult_le_reg_r b) => //; rewrite /Rdiv Rmult_assoc Rinv_l ?Rmult_1_r; lra.
    have := Rmult_le_compat_r b _ _ (Rlt_le _ _ b0) le.
    by rewrite /Rdiv Rmult_assoc Rinv_l ?Rmult_1_r; lra.
  rewrite !one; try lra.
  have -> : ln (other / p) = - ln (p / other).
    by rewrite -ln_Rinv ?Rinv_div //; apply: Rdiv_lt_0_compat; lra.
  by rewrite /Rabs; case: Rcase_abs => ?; lra.
Qed.

(** The exact delta at every eps >= 0. *)
Theorem response_delta eps delta : 0 <= eps -> 0 <= delta ->
  (dp eps delta any_two response <-> p - exp eps * other <= delta /\ other - exp eps * p <= delta).
Proof.
  move=> eps0 d0; have /card_gt0P [x _] := ltnW two; split=> [dpM | [le le'] y z _].
  - have [y neq] := another x; have yx := dpM x y I.
    have := yx [set x]; have := yx [set y].
    by rewrite !Pr_set1 /= /response_mass !eqxx (negbTE neq) eq_sym (negbTE neq); lra.
  - have e1 : 1 <= exp eps by rewrite -exp_0; apply: exp_le.
    have o0 := other_ge0; apply/hockey_stick; rewrite /hockey /=.
    have zero (A : pred T) : (forall t, A t -> response_mass y t <= exp eps * response_mass z t) ->
        \big[Rplus/0]_(t | A t) Rmax 0 (response_mass y t - exp eps * response_mass z t) = 0.
      by move=> le0; apply: big1 => t /le0 ?; rewrite Rmax_left //; lra.
    case: (Rle_dec p other) => po; [rewrite (bigD1 z) | rewrite (bigD1 y)] => //=; rewrite zero ?Rplus_0_r.
    + by rewrite /response_mass eqxx; case: eqP => _; apply: Rmax_lub; nra.
    + by move=> t /negbTE neq; rewrite /response_mass neq; case: eqP => _; nra.
    + by rewrite /response_mass eqxx; case: eqP => _; apply: Rmax_lub; nra.
    + by move=> t /negbTE neq; rewrite /response_mass neq; case: eqP => _; nra.
Qed.

(** The truth is told always: no eps holds. *)
Corollary response_certain eps : p = 1 -> ~ dp eps 0 any_two response.
Proof.
  move=> p1; have /card_gt0P [x _] := ltnW two; have [y neq] := another x.
  apply: (@different_outputs_no_pure_dp _ _ eps any_two response x y x) => //=; rewrite /response_mass.
  - by rewrite eqxx; lra.
  - by rewrite eq_sym (negbTE neq) /other p1 /Rdiv; lra.
Qed.
End Response.

(** ** Hashing *)

(** A public function takes values of any kind to the inputs of [M]; the guarantee is for every such function. *)
Definition hashed_private (S : Type) (T : finType) (M : S -> dist T) (eps delta : R) : Prop :=
  forall (X : Type) (hash : X -> S), dp eps delta any_two (fun x => M (hash x)).

Theorem hashed_exact (S : Type) (T : finType) (M : S -> dist T) eps delta :
  hashed_private M eps delta <-> dp eps delta any_two M.
Proof. by split=> [priv | dpM X hash x y _]; [move=> x y _; exact: (priv S (fun s => s) x y I) | apply: dpM]. Qed.
