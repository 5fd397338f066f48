(** * E-values may be watched at any time: Ville's inequality with a finite horizon

    An experiment makes up to [n] observations.  The law of the next one may depend on all before ([law h]), and so may
    the bet on it: after the history [h], the wealth is multiplied by [factor h t] if t is observed.  If no bet has a
    mean above 1, the wealth ever reaches 1/alpha with a probability of at most alpha.  So a test that may stop at any
    time, and rejects once the wealth is 1/alpha, errs with probability at most alpha.

    Main theorems: [ville], [right_guesses] (the bet on right guesses of the guessing game). *)

From Dpassay Require Import Prelude Finite.

Section Ville.
Variable T : finType.                           (* what one observation can be *)
Variable law : seq T -> dist T.                 (* histories list the observations in order *)
Variable factor : seq T -> T -> R.
Hypothesis factor_ge0 : forall h t, 0 <= factor h t.
Hypothesis fair : forall h, \sum_t (law h t * factor h t) <= 1.

(** The probability of an event about the history after [n] further observations. *)
Fixpoint after (n : nat) (h : seq T) (event : seq T -> bool) : R :=
  if n is n'.+1 then \sum_t (law h t * after n' (rcons h t) event) else (if event h then 1 else 0).

(** The wealth after a history, starting with 1. *)
Definition wealth (h : seq T) : R :=
  \big[Rmult/1]_(k < size h) (if drop k h is t :: _ then factor (take k h) t else 1).

(** Some time, from the beginning on, the wealth was at least 1/alpha. *)
Definition ever (alpha : R) (h : seq T) : bool :=
  has (fun k => if Rle_dec (/ alpha) (wealth (take k h)) then true else false) (iota 0 (size h).+1).

Lemma wealth_rcons h t : wealth (rcons h t) = wealth h * factor h t.
Proof.
  rewrite /wealth size_rcons big_ord_recr /=; congr (_ * _).
    apply: eq_bigr => k _; have lt := ltn_ord k.
    rewrite -cats1 drop_cat takel_cat ?lt; last exact: ltnW.
    by rewrite (drop_nth t lt).
  by rewrite -cats1 drop_size_cat // take_size_cat.
Qed.

Lemma wealth_ge0 h : 0 <= wealth h.
Proof.
  apply: (big_ind (fun a => 0 <= a)); [lra | by move=> *; apply: Rmult_le_pos |].
  by move=> k _; case: (drop k h) => [|t _]; [lra | apply: factor_ge0].
Qed.

Lemma ever_rcons alpha h t : ever alpha (rcons h t) =
  ever alpha h || (if Rle_dec (/ alpha) (wealth (rcons h t)) then true else false).
Proof.
  rewrite /ever size_rcons -[(size h).+2]addn1 iotaD has_cat add0n [has _ (iota _ 1)]/= orbF.
  congr (_ || _); last by rewrite -(size_rcons h t) take_size.
  apply: eq_in_has => k; rewrite mem_iota add0n => /andP [_ lt].
  by rewrite -cats1 takel_cat.
Qed.

Lemma after_le1 n h event : after n h event <= 1.
Proof.
  elim: n h => [|n IH] h /=; first by case: event; lra.
  rewrite -(mass_sum (law h)); apply: sum_le => t _.
  have := IH (rcons h t); have := mass_ge0 (law h) t; nra.
Qed.

Lemma ville_from alpha n h : 0 < alpha -> ~~ ever alpha h -> after n h (ever alpha) <= alpha * wealth h.
Proof.
  move=> a0; elim: n h => [|n IH] h not_yet /=.
    by rewrite (negbTE not_yet); have := wealth_ge0 h; nra.
  apply: (Rle_trans _ (alpha * wealth h * \sum_t (law h t * factor h t))); last first.
    rewrite -{2}(Rmult_1_r (alpha * wealth h)); apply: Rmult_le_compat_l => //.
    by apply: Rmult_le_pos; [lra | apply: wealth_ge0].
  rewrite -sum_const_mult; apply: sum_le => t _.
  have l0 := mass_ge0 (law h) t.
  suff : after n (rcons h t) (ever alpha) <= alpha * wealth (rcons h t) by rewrite wealth_rcons; nra.
  case E : (ever alpha (rcons h t)); last by apply: IH; rewrite E.
  apply: Rle_trans (after_le1 _ _ _) _.
  move: E; rewrite ever_rcons (negbTE not_yet) /=; case: Rle_dec => // reached _.
  have := Rmult_le_compat_l alpha _ _ (Rlt_le _ _ a0) reached; rewrite Rinv_r; lra.
Qed.

Theorem ville alpha n : 0 < alpha <= 1 -> after n [::] (ever alpha) <= alpha.
Proof.
  move=> [a0 a1]; case E : (ever alpha [::]).
  - apply: Rle_trans (after_le1 _ _ _) _.
    move: E; rewrite /ever /= orbF /wealth big_ord0; case: Rle_dec => // le _.
    by have := Rmult_le_compat_l alpha _ _ (Rlt_le _ _ a0) le; rewrite Rinv_r; lra.
  - have := @ville_from alpha n [::] a0; rewrite E => /(_ isT).
    by rewrite /wealth big_ord0; lra.
Qed.
End Ville.

(** The bet of an audit: if each guess is right with probability at most p, whatever happened before, the factor
    1 + bet (1 - p) for a right guess and 1 - bet p for a wrong one has a mean of at most 1. *)
Theorem right_guesses (law : seq bool -> dist bool_finType) p bet alpha n :
  0 < p < 1 -> 0 <= bet <= / p -> (forall h, law h true <= p) -> 0 < alpha <= 1 ->
  after law n [::] (ever (fun _ t => if t then 1 + bet * (1 - p) else 1 - bet * p) alpha) <= alpha.
Proof.
  move=> p01 bet01 le_p a01.
  have bp : bet * p <= 1.
    by have := Rmult_le_compat_r p _ _ (Rlt_le _ _ p01.1) bet01.2; rewrite Rinv_l; lra.
  apply: ville => // [h t | h]; first by case: t; nra.
  rewrite big_bool /=; have := mass_sum (law h); rewrite big_bool /= => sum; have := le_p h; nra.
Qed.
