(** * The worst pair of strings at every eps and delta

    Independent bits: what is done to each output bit separately cannot increase the loss.  So positions in which two
    strings agree can be ignored, and if all bits are kept with the same probability, all ones against all zeros is the worst
    pair at every (eps, delta).

    Main theorems: [product_processing], [ignored_positions], [symmetric_worst]. *)

From Dpassay Require Import Prelude Finite PostProcessing Composition Bits.

Lemma close_ext (T : finType) eps delta (P Q P' Q' : dist T) : (forall t, P t = P' t) -> (forall t, Q t = Q' t) ->
  close eps delta P Q -> close eps delta P' Q'.
Proof.
  move=> eqP eqQ closePQ E; have := closePQ E; rewrite /Pr.
  by rewrite (eq_bigr _ (fun t _ => eqP t)) (eq_bigr _ (fun t _ => eqQ t)).
Qed.

(** Each coordinate of an output is processed by itself. *)
Theorem product_processing n (T U : finType) eps delta (P Q : 'I_n -> dist T) (K : 'I_n -> T -> dist U) :
  close eps delta (product P) (product Q) ->
  close eps delta (product (fun i => bind (P i) (K i))) (product (fun i => bind (Q i) (K i))).
Proof.
  have same (R : 'I_n -> dist T) u :
      bind (product R) (fun t => product (fun i => K i (t i))) u = product (fun i => bind (R i) (K i)) u.
    rewrite /= /product_mass /= (bigA_distr_bigA (fun i t => R i t * K i t (u i))) /=.
    by apply: eq_bigr => t _; rewrite -big_split.
  move=> closePQ; apply: close_ext (same P) (same Q) _.
  exact: post_processing_pair.
Qed.

Section Worst.
Variable n : nat.
Variables p q : 'I_n -> R.
Hypothesis p01 : forall i, 0 < p i < 1.
Hypothesis q01 : forall i, 0 < q i < 1.
Notation strings := {ffun 'I_n -> bool}.

Lemma bit_ge0 i b t : 0 <= bit p q i b t.
Proof. by apply: Rlt_le; apply: bit_gt0. Qed.

(** The law of one output bit. *)
Definition bit_law i b : dist bool_finType := Dist (bit_ge0 i b) (bit_sum p q i b).

Lemma bits_product eps delta (x y : strings) : close eps delta (bits p01 q01 x) (bits p01 q01 y) <->
  close eps delta (product (fun i => bit_law i (x i))) (product (fun i => bit_law i (y i))).
Proof. by split; apply: close_ext. Qed.

(** If each bit of (x, y) can be made from the same bit of (x', y'), the second pair is at least as bad. *)
Lemma made_from eps delta (x y x' y' : strings) (K : 'I_n -> bool -> dist bool_finType) :
  (forall i t, bind (bit_law i (x' i)) (K i) t = bit_law i (x i) t) ->
  (forall i t, bind (bit_law i (y' i)) (K i) t = bit_law i (y i) t) ->
  close eps delta (bits p01 q01 x') (bits p01 q01 y') -> close eps delta (bits p01 q01 x) (bits p01 q01 y).
Proof.
  move=> eqx eqy /bits_product closeXY; apply/bits_product.
  apply: (close_ext _ _ (product_processing K closeXY)) => t; apply: eq_bigr => i _; [exact: eqx | exact: eqy].
Qed.

(** Positions in which x and y agree may have any bits instead. *)
Theorem ignored_positions eps delta (x y x' y' : strings) :
  (forall i, x i != y i -> x' i = x i /\ y' i = y i) ->
  close eps delta (bits p01 q01 x') (bits p01 q01 y') -> close eps delta (bits p01 q01 x) (bits p01 q01 y).
Proof.
  move=> agree; pose K i (t : bool) : dist bool_finType := if x i == y i then bit_law i (x i) else certain t.
  apply: (@made_from _ _ _ _ _ _ K) => i t; rewrite /K; case: eqP => [xy | /eqP /agree [ex ey]].
  - by rewrite /= -big_distrl /= bit_sum Rmult_1_l.
  - by rewrite ex /= big_bool /certain_mass /=; case: t; rewrite /=; lra.
  - by rewrite -xy /= -big_distrl /= bit_sum Rmult_1_l.
  - by rewrite ey /= big_bool /certain_mass /=; case: t; rewrite /=; lra.
Qed.
End Worst.

(** Symmetric flips: each bit is kept with probability p. *)
Theorem symmetric_worst n p (p01 : 0 < p < 1) (q01 : 0 < 1 - p < 1) eps delta :
  dp eps delta any_two (@equal_bits n p (1 - p) p01 q01) <->
  close eps delta (@equal_bits n _ _ p01 q01 [ffun _ => true]) (@equal_bits n _ _ p01 q01 [ffun _ => false]).
Proof.
  split=> [dpM | worst x y _]; first exact: dpM.
  pose K (i : 'I_n) (t : bool) : dist bool_finType :=
    if x i == y i then bit_law (fun _ : 'I_n => p01) (fun _ => q01) i (x i) else certain (if x i then t else ~~ t).
  apply: (made_from (K := K)) worst => i t; rewrite /K ffunE; case: eqP => [xy | neq].
  - by rewrite /= big_bool /=; lra.
  - by rewrite /= big_bool /certain_mass /bit /=; case: (x i); case: t; rewrite /=; lra.
  - by rewrite -xy /= big_bool /=; lra.
  - move: neq; rewrite /= big_bool /certain_mass /bit /=.
    by case: (x i); case: (y i) => neq; [case: neq | | | case: neq]; case: t; rewrite /=; lra.
Qed.
