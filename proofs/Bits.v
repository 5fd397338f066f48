(** * Bits that are redrawn independently

    At position i a 1 stays 1 with probability [p i], and a 0 becomes 1 with probability [q i].  The inputs and outputs
    are strings of [n] bits.

    Main theorems: [bits_pair] (the exact eps of two strings), [bits_exact] (of all strings), [bits_differ] (of strings that
    differ in some positions, as the bits of one person), [symmetric_bits] (n bits cost n times one bit), [one_hot_pair] and
    [one_hot_exact], [bloom_exact] (Bloom filters), [parity_exact] (probabilities that depend on the parity). *)

From Dpassay Require Import Prelude Finite.

Section Bits.
Variable n : nat.
Variables p q : 'I_n -> R.
Hypothesis p01 : forall i, 0 < p i < 1.
Hypothesis q01 : forall i, 0 < q i < 1.

Notation strings := {ffun 'I_n -> bool}.

(** One position: the probability that the input bit [b] gives the output bit [t]. *)
Definition bit (i : 'I_n) (b t : bool) : R :=
  if b then (if t then p i else 1 - p i) else (if t then q i else 1 - q i).

Lemma bit_gt0 i b t : 0 < bit i b t.
Proof. by have := p01 i; have := q01 i; rewrite /bit; case: b; case: t; lra. Qed.

Definition bits_mass (x t : strings) : R := \prod_i bit i (x i) (t i).

Lemma bits_ge0 x t : 0 <= bits_mass x t.
Proof. by apply: prod_ge0 => i; apply: Rlt_le; apply: bit_gt0. Qed.

Lemma bits_sum x : \sum_t bits_mass x t = 1.
Proof.
  rewrite /bits_mass -(bigA_distr_bigA (fun i t => bit i (x i) t)) big1 // => i _.
  by rewrite big_bool /bit /=; case: (x i); rewrite /=; lra.
Qed.

Definition bits (x : strings) : dist [finType of strings] := Dist (bits_ge0 x) (bits_sum x).

(** The same as a product of the laws of the bits. *)
Lemma bit_sum i b : \sum_t bit i b t = 1.
Proof. by rewrite big_bool /bit /=; case: b; lra. Qed.

(** The largest loss at one position, of the input bit [b] against [c]. *)
Definition bit_loss (i : 'I_n) (b c : bool) : R :=
  Rmax (ln (bit i b true / bit i c true)) (ln (bit i b false / bit i c false)).

Lemma bit_loss_bound i b c t : bit i b t <= exp (bit_loss i b c) * bit i c t.
Proof.
  have b0 := bit_gt0 i b t; have c0 := bit_gt0 i c t.
  have le : ln (bit i b t / bit i c t) <= bit_loss i b c by case: t {b0 c0}; [apply: Rmax_l | apply: Rmax_r].
  have := exp_le le; rewrite exp_ln; last by apply: Rdiv_lt_0_compat.
  move=> /(Rmult_le_compat_r _ _ _ (Rlt_le _ _ c0)).
  by have -> : bit i b t / bit i c t * bit i c t = bit i b t by field; lra.
Qed.

Lemma bit_loss_attained i b c : exists t, bit i b t = exp (bit_loss i b c) * bit i c t.
Proof.
  rewrite /bit_loss /Rmax; case: Rle_dec => _; [exists false | exists true];
    rewrite exp_ln; try (by apply: Rdiv_lt_0_compat; apply: bit_gt0);
    by field; apply: Rgt_not_eq; apply: bit_gt0.
Qed.

(** Two strings: losses of independent bits add up, and the bound is attained by one output. *)
Theorem bits_pair eps x y :
  close eps 0 (bits x) (bits y) <-> \sum_i bit_loss i (x i) (y i) <= eps.
Proof.
  have prod_loss (t : strings) : \prod_i (exp (bit_loss i (x i) (y i)) * bit i (y i) (t i)) =
                     exp (\sum_i bit_loss i (x i) (y i)) * bits_mass y t.
    by rewrite big_split exp_sum.
  split=> [/pure_pointwise closeXY | le].
  - have [t worst] := fin_all_exists (fun i => bit_loss_attained i (x i) (y i)).
    pose s : strings := [ffun i => t i].
    have mass_x : bits_mass x s = exp (\sum_i bit_loss i (x i) (y i)) * bits_mass y s.
      by rewrite -prod_loss; apply: eq_bigr => i _; rewrite ffunE; apply: worst.
    have := closeXY s; rewrite /= mass_x => le; apply: exp_le_inv.
    apply: Rmult_le_reg_r le; apply: prod_gt0 => i; exact: bit_gt0.
  - apply/pure_pointwise => t; apply: (Rle_trans _ (exp (\sum_i bit_loss i (x i) (y i)) * bits_mass y t)).
      rewrite -prod_loss; apply: prod_le => i; split; first by apply: Rlt_le; apply: bit_gt0.
      exact: bit_loss_bound.
    by apply: Rmult_le_compat_r; [apply: bits_ge0 | apply: exp_le].
Qed.

(** All strings: the worst order may be chosen at each position. *)
Definition bit_cost (i : 'I_n) : R := Rmax (bit_loss i true false) (bit_loss i false true).

Lemma bit_loss_same i b : bit_loss i b b = 0.
Proof.
  have one t : bit i b t / bit i b t = 1 by apply: Rinv_r; apply: Rgt_not_eq; apply: bit_gt0.
  by rewrite /bit_loss !one ln_1 Rmax_left //; lra.
Qed.

Lemma bit_cost_ge0 i : 0 <= bit_cost i.
Proof.
  have t0 := bit_gt0 i true true; have f0 := bit_gt0 i false true.
  have : ln (bit i true true / bit i false true) + ln (bit i false true / bit i true true) = 0.
    rewrite -ln_mult; try by apply: Rdiv_lt_0_compat.
    by rewrite (_ : _ * _ = 1) ?ln_1 //; field; lra.
  have := Rmax_l (ln (bit i true true / bit i false true)) (ln (bit i true false / bit i false false)).
  have := Rmax_l (ln (bit i false true / bit i true true)) (ln (bit i false false / bit i true false)).
  have := Rmax_l (bit_loss i true false) (bit_loss i false true).
  have := Rmax_r (bit_loss i true false) (bit_loss i false true).
  rewrite -/(bit_loss i true false) -/(bit_loss i false true) -/(bit_cost i); lra.
Qed.

Lemma bit_loss_le_cost i b c : bit_loss i b c <= (if b == c then 0 else bit_cost i).
Proof.
  case: b; case: c; rewrite ?bit_loss_same /=; try lra; [exact: Rmax_l | exact: Rmax_r].
Qed.

Theorem bits_exact eps : dp eps 0 any_two bits <-> \sum_i bit_cost i <= eps.
Proof.
  split=> [dpM | le x y _].
  - pose up i := if Rle_dec (bit_loss i true false) (bit_loss i false true) then false else true.
    have := (bits_pair eps [ffun i => up i] [ffun i => ~~ up i]).1 (dpM _ _ I).
    rewrite (eq_bigr bit_cost) // => i _; rewrite !ffunE /up /bit_cost /Rmax.
    by case: Rle_dec.
  - apply/bits_pair; apply: Rle_trans le; apply: sum_le => i _.
    have := bit_loss_le_cost i (x i) (y i); have := bit_cost_ge0 i; by case: eqP => _; lra.
Qed.

(** Strings that differ only at the positions in [D]. *)
Theorem bits_differ eps (D : {set 'I_n}) (x y : strings) :
  (forall i, x i != y i -> i \in D) -> \sum_(i in D) bit_cost i <= eps -> close eps 0 (bits x) (bits y).
Proof.
  move=> diff le; apply/bits_pair; apply: Rle_trans le; rewrite [X in _ <= X]big_mkcond.
  apply: sum_le => i _; have := bit_loss_le_cost i (x i) (y i); have := bit_cost_ge0 i.
  case: eqP => [_|/eqP /diff ->]; last by lra.
  by case: (i \in D); lra.
Qed.

(** One-hot strings: one bit falls and another rises. *)
Definition one_hot (j : 'I_n) : strings := [ffun i => i == j].

Theorem one_hot_pair eps (j k : 'I_n) : j != k ->
  (close eps 0 (bits (one_hot j)) (bits (one_hot k)) <-> bit_loss j true false + bit_loss k false true <= eps).
Proof.
  move=> neq; rewrite bits_pair (bigD1 j) //= (bigD1 k) /=; last by rewrite eq_sym.
  rewrite big1 => [|i /andP [ij ik]]; last by rewrite !ffunE (negbTE ij) (negbTE ik) bit_loss_same.
  by rewrite !ffunE !eqxx (negbTE neq) eq_sym (negbTE neq) Rplus_0_r.
Qed.
End Bits.

(** ** The same probabilities at every position *)

Lemma sum_const_set (I : finType) (D : {set I}) (c : R) : \sum_(i in D) c = INR #|D| * c.
Proof.
  rewrite big_const; elim: #|D| => [|k IH]; first by rewrite /= Rmult_0_l.
  by rewrite iterS IH S_INR; lra.
Qed.

Section Equal.
Variable n : nat.
Variables p q : R.
Hypothesis p01 : 0 < p < 1.
Hypothesis q01 : 0 < q < 1.

Definition equal_bits (x : {ffun 'I_n -> bool}) := bits (fun _ => p01) (fun _ => q01) x.

Definition equal_cost : R :=
  Rmax (Rmax (ln (p / q)) (ln ((1 - p) / (1 - q)))) (Rmax (ln (q / p)) (ln ((1 - q) / (1 - p)))).

(** n bits cost n times one bit. *)
Theorem equal_bits_exact eps : dp eps 0 any_two equal_bits <-> INR n * equal_cost <= eps.
Proof. by rewrite bits_exact (eq_bigr (fun _ => equal_cost)) // sum_const. Qed.

Lemma equal_cost_ge0 : 0 <= equal_cost.
Proof. exact: (bit_cost_ge0 (n := 1) (fun _ => p01) (fun _ => q01) ord0). Qed.

(** Strings with at most [m] ones each, as Bloom filters with m hashes: min(2m, n) bits can differ. *)
Definition sparse (m : nat) (x y : {ffun 'I_n -> bool}) : Prop :=
  (#|[set i | x i]| <= m)%nat /\ (#|[set i | y i]| <= m)%nat.

Theorem sparse_bits m eps : INR (minn (2 * m) n) * equal_cost <= eps -> dp eps 0 (sparse m) equal_bits.
Proof.
  move=> le x y [mx my]; pose D := [set i | x i] :|: [set i | y i].
  apply: (@bits_differ _ _ _ _ _ _ D) => [i|].
    by rewrite !inE; case: (x i); case: (y i).
  rewrite (eq_bigr (fun _ => equal_cost)) // sum_const_set; apply: Rle_trans le; apply: Rmult_le_compat_r.
    exact: equal_cost_ge0.
  apply: le_INR; apply/leP; rewrite leq_min (leq_trans (leq_card_setU _ _).1) ?mul2n -?addnn ?leq_add //=.
  by have := max_card (mem D); rewrite card_ord.
Qed.

Definition fall : R := Rmax (ln (p / q)) (ln ((1 - p) / (1 - q))).
Definition rise : R := Rmax (ln (q / p)) (ln ((1 - q) / (1 - p))).

Theorem one_hot_exact eps : (1 < n)%nat -> 0 <= eps ->
  (dp eps 0 any_two (fun j => equal_bits (@one_hot n j)) <-> fall + rise <= eps).
Proof.
  move=> n1 eps0; split=> [dpM | le j k _].
  - have neq : Ordinal (ltnW n1) != Ordinal n1 by [].
    by have := (one_hot_pair (fun _ => p01) (fun _ => q01) eps neq).1 (dpM _ _ I).
  - case: (eqVneq j k) => [-> | neq]; last by apply/one_hot_pair.
    apply/bits_pair; rewrite big1 // => i _; exact: (bit_loss_same (fun _ => p01) (fun _ => q01)).
Qed.
End Equal.

(** Symmetric flips: a bit is kept with probability p >= 1/2, and costs ln(p / (1-p)). *)
Lemma symmetric_cost p : 1/2 <= p < 1 -> equal_cost p (1 - p) = ln (p / (1 - p)).
Proof.
  move=> half; rewrite /equal_cost.
  have -> : (1 - p) / (1 - (1 - p)) = (1 - p) / p by congr (_ / _); lra.
  have -> : (1 - (1 - p)) / (1 - p) = p / (1 - p) by congr (_ / _); lra.
  have le : ln ((1 - p) / p) <= ln (p / (1 - p)).
    apply: ln_mono; first by apply: Rdiv_lt_0_compat; lra.
    apply: (Rle_trans _ 1).
      apply: (Rmult_le_reg_r p); first lra.
      by rewrite /Rdiv Rmult_assoc Rinv_l; lra.
    apply: (Rmult_le_reg_r (1 - p)); first lra.
    by rewrite /Rdiv Rmult_assoc Rinv_l; lra.
  by rewrite (Rmax_left _ (ln ((1 - p) / p))) // (Rmax_right (ln ((1 - p) / p))) // Rmax_left //; lra.
Qed.

Theorem symmetric_bits n p (p01 : 0 < p < 1) (q01 : 0 < 1 - p < 1) eps : 1/2 <= p ->
  (dp eps 0 any_two (@equal_bits n p (1 - p) p01 q01) <-> INR n * ln (p / (1 - p)) <= eps).
Proof. by move=> half; rewrite equal_bits_exact symmetric_cost //; lra. Qed.

(** ** Bloom filters *)

(** [m] public hash functions each set one of n bits. *)
Definition filter (n m : nat) (X : Type) (hashes : 'I_m -> X -> 'I_n) (x : X) : {ffun 'I_n -> bool} :=
  [ffun i => [exists j, hashes j x == i]].

Lemma filter_sparse n m (X : Type) (hashes : 'I_m -> X -> 'I_n) x : (#|[set i | filter hashes x i]| <= m)%nat.
Proof.
  have -> : [set i | filter hashes x i] = [set hashes j x | j in 'I_m].
    apply/setP => i; rewrite inE ffunE; apply/existsP/imsetP => [[j /eqP <-] | [j _ ->]]; last by exists j.
    by exists j.
  by apply: leq_trans (leq_imset_card _ _) _; rewrite card_ord.
Qed.

Section Bloom.
Variables n m : nat.
Variable p : R.
Hypothesis p01 : 0 < p < 1.
Hypothesis q01 : 0 < 1 - p < 1.

(** Each bit of the filter is kept with probability p; the guarantee is for all hash functions. *)
Definition bloom_private (eps : R) : Prop :=
  forall (X : Type) (hashes : 'I_m -> X -> 'I_n), dp eps 0 any_two (fun x => equal_bits p01 q01 (filter hashes x)).

Lemma symmetric_losses : fall p (1 - p) = equal_cost p (1 - p) /\ rise p (1 - p) = equal_cost p (1 - p).
Proof.
  rewrite /equal_cost /fall /rise (_ : 1 - (1 - p) = p); last ring.
  rewrite (Rmax_comm (ln ((1 - p) / p))); set a := Rmax _ _.
  by split; rewrite Rmax_left //; apply: Rle_refl.
Qed.

(** It is exact: two values can set min(2m, n) different bits. *)
Theorem bloom_exact eps : (0 < m <= n)%nat -> (1 < n)%nat ->
  (bloom_private eps <-> INR (minn (2 * m) n) * equal_cost p (1 - p) <= eps).
Proof.
  move=> /andP [m0 mn] n1; split=> [priv | le X hashes x y _]; last first.
    by apply: (@sparse_bits n p (1 - p) p01 q01 m eps le); split; apply: filter_sparse.
  (* one value sets the first a bits, the other the next b *)
  pose a := minn m n.-1; pose b := minn m (n - a).
  have a0 : (0 < a)%nat by rewrite /a leq_min m0 -ltnS prednK // ltnW.
  have an : (a < n)%nat by rewrite /a -[X in (_ < X)%nat](prednK (ltnW n1)) ltnS geq_minr.
  have b0 : (0 < b)%nat by rewrite /b leq_min m0 subn_gt0.
  have abn : (a + b <= n)%nat by rewrite -leq_subRL ?geq_minr // ltnW.
  have ab : (minn (2 * m) n <= a + b)%nat.
    rewrite mul2n -addnn /b addn_minr subnKC; last exact: ltnW.
    rewrite leq_min geq_minr andbT; case: (leqP m n.-1) => [le | lt].
      by rewrite /a (minn_idPl le) geq_minl.
    have a_is : a = n.-1 by apply/minn_idPr; apply: ltnW.
    apply: leq_trans (geq_minr _ _) _; rewrite a_is -[X in (X <= _)%nat](prednK (ltnW n1)) -addn1.
    by rewrite leq_add2l.
  have in1 (j : 'I_m) : (minn j a.-1 < n)%nat.
    by apply: leq_ltn_trans (geq_minr _ _) _; apply: leq_ltn_trans (leq_pred _) an.
  have in2 (j : 'I_m) : (a + minn j b.-1 < n)%nat.
    by apply: leq_trans _ abn; rewrite ltn_add2l; apply: leq_ltn_trans (geq_minr _ _) _; rewrite prednK.
  pose hashes (j : 'I_m) (x : bool) : 'I_n := if x then Ordinal (in1 j) else Ordinal (in2 j).
  have am : (a <= m)%nat by apply: geq_minl.
  have bm : (b <= m)%nat by apply: geq_minl.
  have first (i : 'I_n) : filter hashes true i = (i < a)%nat.
    rewrite ffunE; apply/existsP/idP => [[j /eqP <-] /= | ia].
      by apply: leq_ltn_trans (geq_minr _ _) _; rewrite prednK.
    exists (Ordinal (leq_trans ia am)); apply/eqP/val_inj => /=; apply/minn_idPl.
    by rewrite -ltnS prednK.
  have second (i : 'I_n) : filter hashes false i = (a <= i < a + b)%nat.
    rewrite ffunE; apply/existsP/idP => [[j /eqP <-] /= | /andP [ai iab]].
      rewrite leq_addr ltn_add2l; by apply: leq_ltn_trans (geq_minr _ _) _; rewrite prednK.
    have ib : (i - a < b)%nat by rewrite ltn_subLR.
    exists (Ordinal (leq_trans ib bm)); apply/eqP/val_inj => /=.
    by rewrite (minn_idPl _) ?subnKC // -ltnS prednK.
  have := (bits_pair (fun _ => p01) (fun _ => q01) eps _ _).1 (priv bool hashes true false I).
  have [is_fall is_rise] := symmetric_losses; have c0 := equal_cost_ge0 p01 q01.
  rewrite (eq_bigr (fun i : 'I_n => if (i < a + b)%nat then equal_cost p (1 - p) else 0)); last first.
    move=> i _; rewrite first second; case: ltnP => ia /=.
      by rewrite (leq_trans ia (leq_addr _ _)); exact: is_fall.
    case: ltnP => iab; first exact: is_rise.
    exact: (bit_loss_same (n := n) (fun _ => p01) (fun _ => q01)).
  rewrite -big_mkcond (big_ord_narrow abn) sum_const => le; apply: Rle_trans le.
  by apply: Rmult_le_compat_r => //; apply: le_INR; apply/leP.
Qed.
End Bloom.

(** ** Probabilities that depend on the parity of the position (OME, LATENT) *)

Section Parity.
Variables even_p odd_p q : R.
Hypothesis e01 : 0 < even_p < 1.
Hypothesis o01 : 0 < odd_p < 1.
Hypothesis q01 : 0 < q < 1.
Variable n : nat.

Definition parity_p (i : 'I_n) : R := if odd i then odd_p else even_p.

Lemma parity_p01 i : 0 < parity_p i < 1.
Proof. by rewrite /parity_p; case: odd. Qed.

Definition parity_bits (x : {ffun 'I_n -> bool}) := bits parity_p01 (fun _ => q01) x.

Lemma parity_cost (i : 'I_n) :
  bit_cost parity_p (fun _ => q) i = if odd i then equal_cost odd_p q else equal_cost even_p q.
Proof. by rewrite /bit_cost /bit_loss /bit /equal_cost /parity_p; case: odd. Qed.

Theorem parity_bits_exact eps : dp eps 0 any_two parity_bits <->
  \big[Rplus/0]_(i < n) (if odd i then equal_cost odd_p q else equal_cost even_p q) <= eps.
Proof. by rewrite bits_exact; rewrite (eq_bigr _ (fun i _ => parity_cost i)). Qed.
End Parity.

(** Half of the positions are even, and one more if their number is odd. *)
Lemma sum_parity (a b : R) (n : nat) :
  \big[Rplus/0]_(i < n) (if odd i then b else a) = INR (uphalf n) * a + INR n./2 * b.
Proof.
  elim: n => [|n IH]; first by rewrite big_ord0 /=; ring.
  rewrite (_ : uphalf n.+1 = n./2.+1) // (_ : n.+1./2 = uphalf n) // S_INR big_ord_recr IH uphalf_half.
  rewrite [nat_of_ord _]/=; case: (odd n); rewrite ?add0n ?add1n ?S_INR /=; ring.
Qed.

Theorem parity_exact even_p odd_p q (e01 : 0 < even_p < 1) (o01 : 0 < odd_p < 1) (q01 : 0 < q < 1) n eps :
  dp eps 0 any_two (parity_bits e01 o01 q01 (n := n)) <->
  INR (uphalf n) * equal_cost even_p q + INR n./2 * equal_cost odd_p q <= eps.
Proof. by rewrite parity_bits_exact sum_parity. Qed.
