(** * What certificates use

    A certificate (written by [dpassay verify FILE --coq FILE.v]) states the verdict on one claim with its own numbers,
    names one of the theorems below, and leaves the numbers to Coq: [number] closes them by interval arithmetic, by
    [lra], or as an equation. *)

From Coquelicot Require Export Coquelicot.
From Interval Require Export Tactic.
From Dpassay Require Export Prelude Finite Composition RandomizedResponse Bits Exponential TopK Sampling NoNoise Leak.
From Dpassay Require Export Laplace LaplaceVector Diameters Regions Dptext Gaussian GaussianDelta.

(** ** Numbers *)

(** n coordinates, categories or bits, written as a number of any size. *)
Notation index n := (ordinal_finType (Z.to_nat n)).

Lemma index_size n : (0 <= n)%Z -> INR #|index n| = IZR n.
Proof. by move=> n0; rewrite card_ord INR_Z. Qed.

Ltac sizes := rewrite ?card_ord ?INR_Z //; try lia.
Ltac count := by rewrite ?card_ord; apply/ltP; lia.
Ltac roots :=                                   (* of squares: sqrt 1024 is 32 *)
  repeat match goal with |- context [sqrt (IZR ?n)] =>
    let r := eval vm_compute in (Z.sqrt n) in rewrite (_ : sqrt (IZR n) = IZR r); [| by apply: sqrt_lem_1; lra]
  end.
Ltac tie := apply: Req_le; roots; field; repeat split; try lra; try interval with (i_prec 90).
Ltac number := sizes; first [ lra | interval with (i_prec 220) | by tie | interval with (i_prec 1200) ].
Ltac side := first [ count | number ].
Ltac integrated := rewrite /threshold /gaussian_density; integral with (i_prec 120, i_degree 15, i_fuel 300).
Ltac gaussian_number :=
  match goal with
  | |- context [RInt _ _ _] => integrated
  | _ => rewrite ?/threshold ?/gaussian_density; number
  end.

(** ** Laplace noise *)

Section Laplace.
Variable I : finType.
Variables b eps : R.
Implicit Type near : (I -> R) -> (I -> R) -> Prop.

Lemma proven_by near e : exact_eps b near e -> e <= eps -> laplace_private b eps near.
Proof. by move=> exact le; apply/exact. Qed.

Lemma refuted_by near e : exact_eps b near e -> eps < e -> ~ laplace_private b eps near.
Proof. by move=> exact lt; rewrite exact; lra. Qed.

(** Sums of records, one of which is replaced: all other records move both sums equally. *)
Definition record_replaced (region : (I -> R) -> Prop) (x y : I -> R) : Prop :=
  exists rest u v, region u /\ region v /\ (forall i, x i = rest i + u i) /\ (forall i, y i = rest i + v i).

Lemma exact_replaced region e : 0 < b -> exact_eps b (both region) e -> exact_eps b (record_replaced region) e.
Proof.
  move=> b0 exact eps'; rewrite -exact !(laplace_exact b0); split=> le x y.
  - by move=> [rx ry]; apply: le; exists (fun _ => 0), x, y; repeat split=> //; move=> i; lra.
  - move=> [rest [u [v [ru [rv [ex ey]]]]]].
    have -> : l1 x y = l1 u v by apply: eq_bigr => i _; rewrite ex ey; congr Rabs; lra.
    by apply: le.
Qed.
End Laplace.

(** The true epsilon lies between two numbers: none below the first holds, and the second holds. *)
Definition true_epsilon (I : finType) b (near : (I -> R) -> (I -> R) -> Prop) (low high : R) : Prop :=
  exists e, exact_eps b near e /\ low <= e <= high.

(** Word dropout before min-max scaling. *)
Theorem dropped_on_minmax (I : finType) b q e : 0 < b -> 0 <= q <= 1 -> (1 < #|I|)%nat ->
  (dropped_private b q e (@minmax I) <-> amplified q (INR #|I| / b) <= e).
Proof.
  move=> b0 q01 two; have i0 := Rinv_0_lt_compat b b0; split.
  - have /card_gt1P [i [j [_ _ neq]]] := two; have [bx [by_ d]] := minmax_pair neq.
    by apply: (dropped_lower b0 q01 bx by_); rewrite d; lra.
  - move=> le x y r rx ry rr B.
    have up : dropped_private b q (amplified q (INR #|I| / b)) (@minmax I).
      apply: dropped_upper => // [|u v ru rv]; first by apply: Rmult_le_pos; [apply: pos_INR | lra].
      by apply: Rmult_le_compat_r; [lra | apply: minmax_upper].
    apply: Rle_trans (up x y r rx ry rr B) _; apply: Rmult_le_compat_r; last exact: exp_le.
    have := prob_ge0 b0 r B; have := prob_ge0 b0 y B; nra.
Qed.

(** ** Several steps *)

Section TimesClaims.
Variables (S : Type) (T : finType) (near : S -> S -> Prop) (M : S -> dist T) (n : nat) (eps e : R).
Hypothesis n0 : (0 < n)%nat.
Hypothesis each : eps = INR n * e.

Lemma times_each : times_private near M n eps 0 <-> dp e 0 near M.
Proof.
  have N0 : 0 < INR n by apply: lt_0_INR; apply/ltP.
  by rewrite times_exact // each (_ : INR n * e / INR n = e) //; field; lra.
Qed.

Lemma times_proven : dp e 0 near M -> times_private near M n eps 0.
Proof. by move=> dpM; apply/times_each. Qed.

Lemma times_refuted : ~ dp e 0 near M -> ~ times_private near M n eps 0.
Proof. by rewrite times_each. Qed.
End TimesClaims.

(** ** Categories *)

Section Response.
Variable T : finType.
Hypothesis two : (1 < #|T|)%nat.
Variable p : R.
Hypothesis p01 : 0 <= p <= 1.
Variables eps delta : R.
Notation rest := ((1 - p) / (INR #|T| - 1)).

Lemma response_proven : 0 <= eps -> p <= exp eps * rest -> rest <= exp eps * p -> dp eps 0 any_two (response two p01).
Proof. by move=> e0 lo hi; apply/(response_exact two p01 e0). Qed.

Lemma response_refuted : 0 <= eps -> exp eps * rest < p -> ~ dp eps 0 any_two (response two p01).
Proof. by move=> e0 broken; rewrite (response_exact two p01 e0) /other; lra. Qed.

(** A false answer is the likelier one. *)
Lemma response_refuted_false : 0 <= eps -> exp eps * p < rest -> ~ dp eps 0 any_two (response two p01).
Proof. by move=> e0 broken; rewrite (response_exact two p01 e0) /other; lra. Qed.

Lemma response_delta_proven : 0 <= eps -> 0 <= delta -> p - exp eps * rest <= delta -> rest - exp eps * p <= delta ->
  dp eps delta any_two (response two p01).
Proof. by move=> e0 d0 lo hi; apply/(response_delta two p01 e0 d0). Qed.

Lemma response_delta_refuted : 0 <= eps -> 0 <= delta -> delta < p - exp eps * rest ->
  ~ dp eps delta any_two (response two p01).
Proof. by move=> e0 d0 broken; rewrite (response_delta two p01 e0 d0) /other; lra. Qed.

Lemma response_delta_refuted_false : 0 <= eps -> 0 <= delta -> delta < rest - exp eps * p ->
  ~ dp eps delta any_two (response two p01).
Proof. by move=> e0 d0 broken; rewrite (response_delta two p01 e0 d0) /other; lra. Qed.
End Response.

(** ** Bits *)

(** Four ratios bound the cost of one bit; each is also a lower bound. *)
Lemma cost_le p q s : 0 < p < 1 -> 0 < q < 1 ->
  p <= exp s * q -> q <= exp s * p -> 1 - p <= exp s * (1 - q) -> 1 - q <= exp s * (1 - p) -> equal_cost p q <= s.
Proof.
  move=> p01 q01 r1 r2 r3 r4.
  have one a c : 0 < a -> 0 < c -> a <= exp s * c -> ln (a / c) <= s.
    move=> a0 c0 le; apply/ln_le_exp; first exact: Rdiv_lt_0_compat.
    by apply: (Rmult_le_reg_r c) => //; have -> : a / c * c = a; [field; lra | lra].
  by rewrite /equal_cost; repeat apply: Rmax_lub; apply: one; lra.
Qed.

Lemma cost_ge_fall1 p q : ln (p / q) <= equal_cost p q.
Proof. by apply: Rle_trans (Rmax_l _ _); apply: Rmax_l. Qed.
Lemma cost_ge_fall0 p q : ln ((1 - p) / (1 - q)) <= equal_cost p q.
Proof. by apply: Rle_trans (Rmax_l _ _); apply: Rmax_r. Qed.
Lemma cost_ge_rise1 p q : ln (q / p) <= equal_cost p q.
Proof. by apply: Rle_trans (Rmax_r _ _); apply: Rmax_l. Qed.
Lemma cost_ge_rise0 p q : ln ((1 - q) / (1 - p)) <= equal_cost p q.
Proof. by apply: Rle_trans (Rmax_r _ _); apply: Rmax_r. Qed.

Section ParityClaims.
Variables even_p odd_p q : R.
Hypothesis e01 : 0 < even_p < 1.
Hypothesis o01 : 0 < odd_p < 1.
Hypothesis q01 : 0 < q < 1.
Variables n e o : Z.                            (* the bits, and how many are at even and at odd positions *)
Hypothesis sum : n = (e + o)%Z.
Hypothesis o0 : (0 <= o)%Z.
Hypothesis half : (e = o \/ e = o + 1)%Z.
Variable eps : R.

Lemma parity_sizes : INR (uphalf (Z.to_nat n)) = IZR e /\ INR (Z.to_nat n)./2 = IZR o.
Proof.
  rewrite sum; case: half => ->.
  - have -> : Z.to_nat (o + o) = (Z.to_nat o).*2 by rewrite -addnn -plusE; lia.
    by rewrite uphalf_double doubleK INR_Z.
  - have -> : Z.to_nat (o + 1 + o) = (Z.to_nat o).*2.+1 by rewrite -addnn -plusE; lia.
    rewrite (_ : uphalf (Z.to_nat o).*2.+1 = (Z.to_nat o).+1); last by rewrite -{2}(doubleK (Z.to_nat o)).
    by rewrite (_ : (Z.to_nat o).*2.+1./2 = Z.to_nat o) ?S_INR ?INR_Z ?plus_IZR //; apply: uphalf_double.
Qed.

(** Even bits cost at most a, odd ones at most c. *)
Lemma parity_proven a c : equal_cost even_p q <= a -> equal_cost odd_p q <= c -> IZR e * a + IZR o * c <= eps ->
  dp eps 0 any_two (parity_bits e01 o01 q01 (n := Z.to_nat n)).
Proof.
  move=> ce co le; apply/parity_exact; have [-> ->] := parity_sizes; have := IZR_le _ _ o0.
  have : 0 <= IZR e by apply: IZR_le; lia.
  nra.
Qed.

(** Even bits cost at least a, odd ones at least c. *)
Lemma parity_refuted a c : a <= equal_cost even_p q -> c <= equal_cost odd_p q -> eps < IZR e * a + IZR o * c ->
  ~ dp eps 0 any_two (parity_bits e01 o01 q01 (n := Z.to_nat n)).
Proof.
  move=> ce co lt; rewrite parity_exact; have [-> ->] := parity_sizes; have := IZR_le _ _ o0.
  have : 0 <= IZR e by apply: IZR_le; lia.
  nra.
Qed.
End ParityClaims.

Section OneHotClaims.
Variables p q : R.
Hypothesis p01 : 0 < p < 1.
Hypothesis q01 : 0 < q < 1.
Variable n : nat.
Variable eps : R.
Notation one_hot_bits := (fun j => equal_bits p01 q01 (@one_hot n j)).

Lemma one_hot_proven a c : (1 < n)%nat -> p <= exp a * q -> 1 - p <= exp a * (1 - q) ->
  q <= exp c * p -> 1 - q <= exp c * (1 - p) -> 0 <= a + c -> a + c <= eps -> dp eps 0 any_two one_hot_bits.
Proof.
  move=> n1 r1 r2 r3 r4 e0 le; apply/one_hot_exact => //; first lra.
  have one x y s : 0 < x -> 0 < y -> x <= exp s * y -> ln (x / y) <= s.
    move=> x0 y0 le'; apply/ln_le_exp; first exact: Rdiv_lt_0_compat.
    by apply: (Rmult_le_reg_r y) => //; have -> : x / y * y = x; [field; lra | lra].
  have : fall p q <= a by rewrite /fall; apply: Rmax_lub; apply: one; lra.
  have : rise p q <= c by rewrite /rise; apply: Rmax_lub; apply: one; lra.
  lra.
Qed.

(** The odds of both bits together. *)
Lemma small_ratio x y : 0 < x -> x <= y -> ln (x / y) <= 0.
Proof.
  move=> x0 xy; rewrite -ln_1; apply: ln_mono; first by apply: Rdiv_lt_0_compat; lra.
  by apply: (Rmult_le_reg_r y); [lra | rewrite /Rdiv Rmult_assoc Rinv_l; lra].
Qed.

Lemma large_ratio x y : 0 < x -> x <= y -> 0 <= ln (y / x).
Proof.
  move=> x0 xy; rewrite -ln_1; apply: ln_mono; first lra.
  by apply: (Rmult_le_reg_r x); [lra | rewrite /Rdiv Rmult_assoc Rinv_l; lra].
Qed.

Lemma both_bits x y z w : 0 < x -> 0 < y -> 0 < z -> 0 < w -> (ln (x / y) + ln (z / w) <= eps <-> x * z <= exp eps * (y * w)).
Proof.
  move=> x0 y0 z0 w0; rewrite -ln_mult; try by apply: Rdiv_lt_0_compat.
  rewrite ln_le_exp; last by apply: Rmult_lt_0_compat; apply: Rdiv_lt_0_compat.
  have d0 : 0 < y * w by apply: Rmult_lt_0_compat.
  have is_ : x / y * (z / w) * (y * w) = x * z by field; lra.
  split=> le; last by apply: (Rmult_le_reg_r (y * w)) => //; lra.
  by have := Rmult_le_compat_r _ _ _ (Rlt_le _ _ d0) le; lra.
Qed.

Lemma one_hot_odds : (1 < n)%nat -> 0 <= eps -> q <= p ->
  (dp eps 0 any_two one_hot_bits <-> p * (1 - q) <= exp eps * (q * (1 - p))).
Proof.
  move=> n1 e0 qp; rewrite one_hot_exact // -both_bits; try lra.
  rewrite /fall /rise Rmax_left; last by apply: (Rle_trans _ 0); [apply: small_ratio; lra | apply: large_ratio; lra].
  by rewrite Rmax_right //; apply: (Rle_trans _ 0); [apply: small_ratio; lra | apply: large_ratio; lra].
Qed.

Lemma one_hot_odds_swapped : (1 < n)%nat -> 0 <= eps -> p <= q ->
  (dp eps 0 any_two one_hot_bits <-> (1 - p) * q <= exp eps * ((1 - q) * p)).
Proof.
  move=> n1 e0 qp; rewrite one_hot_exact // -both_bits; try lra.
  rewrite /fall /rise Rmax_right; last by apply: (Rle_trans _ 0); [apply: small_ratio; lra | apply: large_ratio; lra].
  by rewrite Rmax_left //; apply: (Rle_trans _ 0); [apply: small_ratio; lra | apply: large_ratio; lra].
Qed.
End OneHotClaims.

Section BloomClaims.
Variable p : R.
Hypothesis p01 : 0 < p < 1.
Hypothesis q01 : 0 < 1 - p < 1.
Variables n m k : Z.                            (* the bits, the hashes, and how many bits can differ *)
Hypothesis n1 : (1 < n)%Z.
Hypothesis mn : (0 < m <= n)%Z.
Hypothesis differ : k = Z.min (2 * m) n.
Variable eps : R.

Lemma bloom_size : INR (minn (2 * Z.to_nat m) (Z.to_nat n)) = IZR k.
Proof.
  by rewrite -(INR_Z (z := k)); last lia; congr INR; rewrite /minn -multE; case: ltP => lt; lia.
Qed.

Lemma bloom_cost : bloom_private (Z.to_nat n) (Z.to_nat m) p01 q01 eps <-> IZR k * equal_cost p (1 - p) <= eps.
Proof. by rewrite bloom_exact ?bloom_size //; [apply/andP; split; [apply/ltP | apply/leP]; lia | apply/ltP; lia]. Qed.

Lemma bloom_proven s : p <= exp s * (1 - p) -> 1 - p <= exp s * p -> IZR k * s <= eps ->
  bloom_private (Z.to_nat n) (Z.to_nat m) p01 q01 eps.
Proof.
  move=> r1 r2 le; apply/bloom_cost; have : equal_cost p (1 - p) <= s by apply: cost_le => //; lra.
  have : 0 <= IZR k by apply: IZR_le; lia.
  nra.
Qed.

Lemma bloom_refuted s : s <= equal_cost p (1 - p) -> eps < IZR k * s ->
  ~ bloom_private (Z.to_nat n) (Z.to_nat m) p01 q01 eps.
Proof.
  move=> cost lt; rewrite bloom_cost; have : 0 <= IZR k by apply: IZR_le; lia.
  nra.
Qed.
End BloomClaims.

(** ** Scores *)

Section ScoreClaims.
Variable T : finType.
Hypothesis nonempty : (0 < #|T|)%nat.
Variables r eps : R.
Notation choice := (exponential nonempty r).
Notation others := (INR #|T| - 1).

Lemma cube_proven l w : 0 < r -> 0 <= w ->
  exp (r * w) * (1 + others * exp (r * w)) / (exp (r * w) + others) <= exp eps -> dp eps 0 (cube_near l w) choice.
Proof. by move=> r0 w0 le; apply/(exponential_cube_exact nonempty r0 l eps w0). Qed.

Lemma cube_refuted l w : 0 < r -> 0 <= w ->
  exp eps < exp (r * w) * (1 + others * exp (r * w)) / (exp (r * w) + others) -> ~ dp eps 0 (cube_near l w) choice.
Proof. by move=> r0 w0 lt; rewrite (exponential_cube_exact nonempty r0 l eps w0) /cube_ratio; lra. Qed.

Lemma two_proven l w : 0 < r -> 0 <= w -> #|T| = 2%nat -> r * w <= eps -> dp eps 0 (cube_near l w) choice.
Proof. by move=> r0 w0 two le; apply/exponential_two_exact. Qed.

Lemma two_refuted l w : 0 < r -> 0 <= w -> #|T| = 2%nat -> eps < r * w -> ~ dp eps 0 (cube_near l w) choice.
Proof. by move=> r0 w0 two lt; rewrite exponential_two_exact //; lra. Qed.

Lemma linf_refuted D : 0 < r -> (1 < #|T|)%nat -> 0 <= D -> eps < 2 * r * D -> ~ dp eps 0 (linf_near D) choice.
Proof. by move=> r0 two D0 lt; rewrite exponential_linf_exact //; lra. Qed.

Lemma monotone_refuted D : 0 < r -> (1 < #|T|)%nat -> 0 <= D -> eps < r * D -> ~ dp eps 0 (monotone_near D) choice.
Proof. by move=> r0 two D0 lt; rewrite exponential_monotone_exact //; lra. Qed.

Lemma l1_refuted D : 0 < r -> (1 < #|T|)%nat -> 0 <= D -> eps < r * D -> ~ dp eps 0 (l1_scores D) choice.
Proof. by move=> r0 two D0 lt; rewrite exponential_l1_exact //; lra. Qed.
End ScoreClaims.

(** ** Values that are shown now and then *)

Definition between (l h x y : R) : Prop := l <= x <= h /\ l <= y <= h.

Lemma leak_refuted p eps delta l h : 0 <= p <= 1 -> 0 <= eps -> l < h -> delta < p -> ~ leak_private p eps delta (between l h).
Proof.
  move=> p01 e0 lh lt; have near : between l h h l by split; lra.
  by rewrite (@leak_exact R p p01 eps delta _ h l e0 near); lra.
Qed.

Lemma leak_refuted_names (T : finType) p eps delta : (1 < #|T|)%nat -> 0 <= p <= 1 -> 0 <= eps -> delta < p ->
  ~ leak_private (X := T) p eps delta any_two.
Proof.
  move=> /card_gt1P [x [y [_ _ /eqP neq]]] p01 e0 lt.
  by rewrite (@leak_exact T p p01 eps delta any_two x y e0 I neq); lra.
Qed.

Lemma rows_proven (X : Type) p (p01 : 0 <= p <= 1) n eps delta : 0 <= eps -> p <= delta ->
  @rows_private X p p01 n eps delta.
Proof. by move=> e0 le x y near A; have := leak_rows p01 e0 near A; lra. Qed.
