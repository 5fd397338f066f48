(** * Records that are sampled, and words that are dropped

    A data set (or a text) is a list.  Each element takes part with probability [q], independently; the mechanism sees
    those that take part.  Word dropout with probability mu is the case q = 1 - mu.

    Main theorems: [poisson_subsampling] (a record added or removed), [dropout] (a word replaced),
    [dropout_needs_any_two] (the premise of the latter). *)

From Dpassay Require Import Prelude Finite.

(** ** One event of mixtures *)

(** e^eps' = 1 + q (e^eps - 1) *)
Definition amplified (q eps : R) : R := ln (1 + q * (exp eps - 1)).

Lemma exp_amplified q eps : 0 <= q <= 1 -> exp (amplified q eps) = 1 + q * (exp eps - 1).
Proof. by move=> q01; rewrite /amplified exp_ln //; have := exp_pos eps; nra. Qed.

Lemma amplified_all eps : amplified 1 eps = eps.
Proof. by rewrite /amplified (_ : 1 + 1 * (exp eps - 1) = exp eps) ?ln_exp; [|ring]. Qed.

Lemma amplify_with q g delta a b : 0 <= q -> b <= g * a + delta ->
  (1 - q) * a + q * b <= (1 + q * (g - 1)) * a + q * delta.
Proof. nra. Qed.

Lemma amplify_without q g delta a b : 0 <= q <= 1 -> 1 <= g -> 0 <= a -> 0 <= delta -> a <= g * b + delta ->
  a <= (1 + q * (g - 1)) * ((1 - q) * a + q * b) + q * delta.
Proof.
  move=> q01 g1 a0 d0 le; apply: (Rmult_le_reg_l g); first lra.
  have : 0 <= q * (1 - q) * (g - 1) * (g - 1) * a.
    by repeat apply: Rmult_le_pos; lra.
  have : 0 <= q * (1 + q * (g - 1)) * (g * b + delta - a) by repeat apply: Rmult_le_pos; nra.
  have : 0 <= q * delta * ((1 - q) * (g - 1)) by repeat apply: Rmult_le_pos; nra.
  nra.
Qed.

(** [p] and [p'] with the element, [r] without it: both bounds are needed. *)
Lemma amplify_replaced q g delta p p' r : 0 <= q <= 1 -> 1 <= g -> p <= g * r + delta -> p <= g * p' + delta ->
  (1 - q) * r + q * p <= (1 + q * (g - 1)) * ((1 - q) * r + q * p') + q * delta.
Proof.
  move=> q01 g1 le_r le_p'.
  have w0 : 0 <= (1 - q) * (g - 1) by nra.
  have w1 : 0 <= 1 + q * (g - 1) by nra.
  have : g * p <= g * ((1 - q) * (g - 1) * r + (1 + q * (g - 1)) * p' + delta).
    have := Rmult_le_compat_l _ _ _ w0 le_r; have := Rmult_le_compat_l _ _ _ w1 le_p'; nra.
  move=> /Rmult_le_reg_l le; have := le ltac:(lra); nra.
Qed.

(** ** The mechanisms *)

Lemma mix_ge0 q (T : finType) (P R : dist T) : 0 <= q <= 1 -> forall t, 0 <= (1 - q) * R t + q * P t.
Proof. by move=> q01 t; have := mass_ge0 P t; have := mass_ge0 R t; nra. Qed.

Lemma mix_sum q (T : finType) (P R : dist T) : \sum_t ((1 - q) * R t + q * P t) = 1.
Proof. by rewrite sum_add !sum_const_mult !mass_sum; lra. Qed.

(** [P] with probability q, otherwise [R]. *)
Definition mix q (q01 : 0 <= q <= 1) (T : finType) (P R : dist T) : dist T := Dist (mix_ge0 P R q01) (mix_sum q P R).

Section Sampling.
Variable X : Type.                              (* records, or words *)
Variable T : finType.
Variable q : R.
Hypothesis q01 : 0 <= q <= 1.

Fixpoint sampled (M : seq X -> dist T) (data : seq X) : dist T :=
  if data is x :: rest then mix q01 (sampled (fun s => M (x :: s)) rest) (sampled M rest) else M [::].

Lemma Pr_mix (P R : dist T) E : Pr (mix q01 P R) E = (1 - q) * Pr R E + q * Pr P E.
Proof. by rewrite /Pr sum_add !sum_const_mult. Qed.

Lemma mix_close eps delta (P R P' R' : dist T) :
  close eps delta P P' -> close eps delta R R' -> close eps delta (mix q01 P R) (mix q01 P' R').
Proof. by move=> cP cR E; rewrite !Pr_mix; have := cP E; have := cR E; nra. Qed.

(** What holds whichever elements take part holds for the mixture over them. *)
Lemma sampled_close eps delta M N data :
  (forall s, close eps delta (M s) (N s)) -> close eps delta (sampled M data) (sampled N data).
Proof.
  elim: data M N => [|x data IH] M N closeMN; first exact: closeMN.
  by apply: mix_close; apply: IH => s; apply: closeMN.
Qed.

(** [D] has one record more than [D']. *)
Definition one_more (D D' : seq X) : Prop := exists A x B, D = A ++ x :: B /\ D' = A ++ B.
Definition add_remove (D D' : seq X) : Prop := one_more D D' \/ one_more D' D.

Theorem poisson_subsampling eps delta (M : seq X -> dist T) : 0 <= eps -> 0 <= delta ->
  dp eps delta add_remove M -> dp (amplified q eps) (q * delta) add_remove (sampled M).
Proof.
  move=> eps0 d0 dpM.
  have g1 : 1 <= exp eps by rewrite -exp_0; apply: exp_le.
  have both (A : seq X) x (B : seq X) (N : seq X -> dist T) :
      (forall A x B, close eps delta (N (A ++ x :: B)) (N (A ++ B)) /\ close eps delta (N (A ++ B)) (N (A ++ x :: B))) ->
      close (amplified q eps) (q * delta) (sampled N (A ++ x :: B)) (sampled N (A ++ B)) /\
      close (amplified q eps) (q * delta) (sampled N (A ++ B)) (sampled N (A ++ x :: B)).
    elim: A N => [|a A IH] N closeN /=.
      have with_x : close eps delta (sampled (fun s => N (x :: s)) B) (sampled N B).
        by apply: sampled_close => s; case: (closeN [::] x s).
      have without_x : close eps delta (sampled N B) (sampled (fun s => N (x :: s)) B).
        by apply: sampled_close => s; case: (closeN [::] x s).
      split=> E; rewrite !Pr_mix exp_amplified //.
      + by apply: amplify_with; [lra | exact: with_x].
      + by apply: amplify_without => //; first [exact: Pr_ge0 | exact: without_x].
    have [w w'] := IH (fun s => N (a :: s)) (fun A' => closeN (a :: A')); have [v v'] := IH N closeN.
    by split; apply: mix_close.
  have pairs A x B : close eps delta (M (A ++ x :: B)) (M (A ++ B)) /\ close eps delta (M (A ++ B)) (M (A ++ x :: B)).
    by split; apply: dpM; [left | right]; exists A, x, B.
  by move=> D D' [] [A [x [B [-> ->]]]]; case: (both A x B M pairs).
Qed.

(** One element is replaced by another. *)
Definition replaced (D D' : seq X) : Prop := exists A x y B, D = A ++ x :: B /\ D' = A ++ y :: B.

Theorem dropout eps delta (M : seq X -> dist T) : 0 <= eps ->
  dp eps delta any_two M -> dp (amplified q eps) (q * delta) replaced (sampled M).
Proof.
  move=> eps0 dpM; have g1 : 1 <= exp eps by rewrite -exp_0; apply: exp_le.
  move=> D D' [A [x [y [B [-> ->]]]]]; elim: A M dpM => [|a A IH] M dpM /=.
    move=> E; rewrite !Pr_mix exp_amplified //; apply: amplify_replaced => //.
    + by apply: (@sampled_close eps delta (fun s => M (x :: s)) M) => s; apply: dpM.
    + by apply: (@sampled_close eps delta (fun s => M (x :: s)) (fun s => M (y :: s))) => s; apply: dpM.
  by apply: mix_close; apply: IH => // s s' _; apply: dpM.
Qed.
End Sampling.

(** ** The premise of dropout

    The guarantee of the rest must hold between any two texts, because the text without the word occurs too.  Here the
    mechanism shows whether the text is empty and, if not, its first word after randomized response.  Texts of one length
    are ln 3 apart, and a word that is dropped half of the time is still ln 3 apart from another, not ln 2. *)

Definition same_length (D D' : seq bool) : Prop := size D = size D'.

Lemma quarter : 0 <= 1/4 <= 1. Proof. lra. Qed.
Lemma half : 0 <= 1/2 <= 1. Proof. lra. Qed.

Definition first_word (D : seq bool) : dist [finType of option bool] :=
  if D is w :: _ then mix quarter (certain (Some (~~ w))) (certain (Some w)) else certain None.

Theorem dropout_needs_any_two :
  dp (ln 3) 0 same_length first_word /\ ~ dp (amplified (1/2) (ln 3)) 0 (@replaced bool) (sampled half first_word).
Proof.
  split=> [D D' same | dpM].
  - apply/pure_pointwise => t; rewrite exp_ln; last lra.
    by case: D D' same => [|[] D] [|[] D'] //= _; case: t => [[]|]; rewrite /= /certain_mass /=; lra.
  - have near : replaced [:: true] [:: false] by exists [::], true, false, [::].
    have := (pure_pointwise _ _ _).1 (dpM _ _ near) (Some true).
    rewrite exp_amplified ?exp_ln; try lra; rewrite /= /certain_mass /=; lra.
Qed.
