(** * Sums of records, and batches of a fixed size: the premises, each with a counterexample

    A theorem about the vectors of one record says nothing about sums of records, unless its premises hold.  The lemmas
    here are the premises that docs/proofs/record-sums.md and docs/proofs/fixed-size.md state, with mechanisms that break
    the conclusion where a premise is left out.

    Main theorems: [batch_sampling], [batch_sum], [vectors_are_not_batches], [sums_have_no_limit], [one_record_is_not_the_sum],
    [sphere_sums], [order_matters]. *)

From Dpassay Require Import Prelude Finite PostProcessing Sampling.

(** ** Batches of a fixed size *)

(** All but one record of a batch, and another record, are drawn first ([w]); with probability q the record in question takes the
    place of the latter.  That record is x in one data set and y in the other. *)
Theorem batch_sampling (W T : finType) (draw : dist W) (with_x with_y without : W -> dist T) eps delta q
    (q01 : 0 <= q <= 1) : 0 <= eps ->
  (forall w, close eps delta (with_x w) (with_y w)) -> (forall w, close eps delta (with_x w) (without w)) ->
  close (amplified q eps) (q * delta) (bind draw (fun w => mix q01 (with_x w) (without w)))
    (bind draw (fun w => mix q01 (with_y w) (without w))).
Proof.
  move=> eps0 xy x_without; apply: mixture => w E; rewrite !Pr_mix exp_amplified //.
  apply: amplify_replaced; [done | by rewrite -exp_0; apply: exp_le | exact: x_without | exact: xy].
Qed.

(** ** Where the sums of batches lie *)

(** All records but [i] have the number [v'].  A batch of m records has the sum (m-1) v' + v with the record i, and
    m v' without it. *)
Theorem batch_sum (I : finType) (i : I) (v v' : R) (S : {set I}) :
  \sum_(j in S) (if j == i then v else v') =
  if i \in S then (INR #|S| - 1) * v' + v else INR #|S| * v'.
Proof.
  have const (A : {set I}) : \sum_(j in A) v' = INR #|A| * v'.
    rewrite big_const; elim: #|A| => [|k IH]; first by rewrite /= Rmult_0_l.
    by rewrite iterS IH S_INR; lra.
  have differ : \sum_(j in S) (if j == i then v else v') =
                \sum_(j in S) v' + (if i \in S then v - v' else 0).
    case: ifP => [iS | /negbT iS].
      rewrite (bigD1 i) //= eqxx [X in _ = X + _](bigD1 i) //=.
      rewrite (eq_bigr (fun _ => v')); last by move=> j /andP [_ /negbTE ->].
      by ring.
    rewrite Rplus_0_r; apply: eq_bigr => j jS; case: eqP => // ji; by rewrite ji (negbTE iS) in jS.
  by rewrite differ const; case: ifP => _; ring.
Qed.

(** A batch mechanism shows whether the sum of a batch exceeds a limit. *)
Definition exceeds (limit s : R) : dist bool_finType := certain (if Rlt_dec limit s then true else false).

Lemma exceeds_no s limit : s <= limit -> exceeds limit s = certain false.
Proof. by move=> le; rewrite /exceeds; case: Rlt_dec => // ?; lra. Qed.

Lemma exceeds_yes s limit : limit < s -> exceeds limit s = certain true.
Proof. by move=> lt; rewrite /exceeds; case: Rlt_dec => // ?; lra. Qed.

Lemma certain_differ (T : finType) (t u : T) eps : t != u -> ~ close eps 0 (certain t) (certain u).
Proof.
  move=> neq /(_ [set t]); rewrite !Pr_set1 /= /certain_mass eqxx (negbTE neq); lra.
Qed.

(** Fixed size, point 5: the pair of vectors (v, v') need not be the pair of sums.  Let records be 1 or 2 and a batch
    have two of them; "is it above 3/2?" tells the vectors 1 and 2 apart, whatever eps, but not the sums of two batches. *)
Theorem vectors_are_not_batches :
  (forall eps, ~ close eps 0 (exceeds (3/2) 2) (exceeds (3/2) 1)) /\
  (forall a b a' b', 1 <= a <= 2 -> 1 <= b <= 2 -> 1 <= a' <= 2 -> 1 <= b' <= 2 ->
    close 0 0 (exceeds (3/2) (a + b)) (exceeds (3/2) (a' + b'))).
Proof.
  split=> [eps | a b a' b' *].
  - rewrite exceeds_yes ?exceeds_no; try lra; exact: certain_differ.
  - by rewrite !exceeds_yes; try lra; move=> E; rewrite exp_0; lra.
Qed.

(** ** Sums that differ in one record *)

Definition total (D : seq R) : R := \big[Rplus/0]_(v <- D) v.

(** One more record moves the sum by its vector, and one that is replaced by the difference. *)
Lemma sum_one_more A v B : total (A ++ v :: B) = total (A ++ B) + v.
Proof. by rewrite /total !big_cat big_cons /=; ring. Qed.

Lemma sum_replaced A v v' B : total (A ++ v :: B) - total (A ++ v' :: B) = v - v'.
Proof. by rewrite !sum_one_more; ring. Qed.

Lemma total_nseq n v : total (nseq n v) = INR n * v.
Proof.
  elim: n => [|n IH]; first by rewrite /total big_nil /=; lra.
  by rewrite S_INR /total /= big_cons -/(total (nseq n v)) IH; ring.
Qed.

(** Values between limits have sums beyond every limit: a bound that needs limits does not hold for sums. *)
Theorem sums_have_no_limit L v : 0 < v ->
  exists D D', one_more D D' /\ (forall u, List.In u D -> u = v) /\ L < total D /\ L < total D'.
Proof.
  move=> v0; have a0 := Rabs_pos L; have leL := Rle_abs L.
  have [n [large n_gt0]] : exists n, / INR n < v / (Rabs L + 1) /\ (0 < n)%coq_nat.
    by apply: archimed_cor1; apply: Rdiv_lt_0_compat; lra.
  have n0 := lt_0_INR n n_gt0.
  exists (nseq n.+1 v), (nseq n v); split; first by exists [::], v, (nseq n v).
  have big : L < INR n * v.
    have := Rmult_lt_compat_r (INR n * (Rabs L + 1)) _ _ ltac:(nra) large.
    have -> : / INR n * (INR n * (Rabs L + 1)) = Rabs L + 1 by field; lra.
    have -> : v / (Rabs L + 1) * (INR n * (Rabs L + 1)) = INR n * v by field; lra.
    lra.
  rewrite !total_nseq S_INR; repeat split; try nra.
  by move=> u; elim: n.+1 => [//|k IH] /= [-> //|/IH].
Qed.

(** Records in [0, 1]: "is it above 3/2?" shows nothing of one record, and breaks every eps for sums. *)
Theorem one_record_is_not_the_sum :
  (forall v v', 0 <= v <= 1 -> 0 <= v' <= 1 -> close 0 0 (exceeds (3/2) v) (exceeds (3/2) v')) /\
  exists D D', one_more D D' /\ (forall u, List.In u D -> 0 <= u <= 1) /\
    forall eps, ~ close eps 0 (exceeds (3/2) (total D)) (exceeds (3/2) (total D')).
Proof.
  split=> [v v' *|].
    by rewrite !exceeds_no; try lra; move=> E; rewrite exp_0; lra.
  exists [:: 1; 1], [:: 1]; split; first by exists [::], 1, [:: 1].
  split=> [u | eps]; first by case=> [<-|[<-|[]]]; lra.
  rewrite /total !big_cons !big_nil exceeds_yes ?exceeds_no; try lra; exact: certain_differ.
Qed.

(** Records C and -C (a sphere in one dimension): all sums are multiples of C, so that the pair of sums C/2, -C/2 of the
    ball does not occur. *)
Theorem sphere_sums C (D : seq R) : C <> 0 -> (forall v, List.In v D -> v = C \/ v = - C) ->
  (exists k : Z, total D = IZR k * C) /\ total D <> C / 2.
Proof.
  move=> C0 on_sphere.
  have multiple : exists k : Z, total D = IZR k * C.
    elim: D on_sphere => [|v D IH] on_sphere; first by exists 0%Z; rewrite /total big_nil; lra.
    have [k sum] := IH (fun u inD => on_sphere u (or_intror inD)).
    rewrite /total big_cons -/(total D) sum; case: (on_sphere v (or_introl erefl)) => ->.
    - by exists (k + 1)%Z; rewrite plus_IZR; ring.
    - by exists (k - 1)%Z; rewrite minus_IZR; ring.
  split=> //; case: multiple => k -> half.
  have : IZR k * 2 = 1 by apply: (Rmult_eq_reg_r C) => //; lra.
  rewrite -mult_IZR => /eq_IZR; lia.
Qed.

(** ** The order of a pair *)

(** What one order shows the other need not: close in one order at eps = ln 2, in the other at no eps. *)
Theorem order_matters : let Q := mix half (certain true) (certain false) in
  close (ln 2) 0 (certain true) Q /\ forall eps, ~ close eps 0 Q (certain true).
Proof.
  move=> Q; split=> [| eps /(_ [set false])].
  - apply/pure_pointwise => t; rewrite exp_ln /=; last lra.
    by case: t; rewrite /certain_mass /=; lra.
  - by rewrite !Pr_set1 /= /certain_mass /=; lra.
Qed.
