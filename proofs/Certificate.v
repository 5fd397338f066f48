(** * What certificates use

    A certificate (written by [dpassay verify FILE --coq FILE.v]) states the verdict on one claim with its own numbers,
    names one of the theorems below, and leaves the numbers to Coq: [number] closes them by interval arithmetic, by
    [lra], or as an equation. *)

From Coquelicot Require Export Coquelicot.
From Interval Require Export Tactic.
From Dpassay Require Export Prelude Finite Composition RandomizedResponse Bits Exponential Sampling NoNoise.
From Dpassay Require Export Laplace LaplaceVector Diameters Regions Dptext Gaussian GaussianDelta.

(** ** Numbers *)

(** n coordinates, categories or bits, written as a number of any size. *)
Notation index n := (ordinal_finType (Z.to_nat n)).

Lemma index_size n : (0 <= n)%Z -> INR #|index n| = IZR n.
Proof. by move=> n0; rewrite card_ord INR_Z. Qed.

Ltac sizes := rewrite ?card_ord ?INR_Z //; try lia.
Ltac count := by rewrite ?card_ord; apply/ltP; lia.
Ltac tie := apply: Req_le; field; repeat split; try lra; try interval with (i_prec 90).
Ltac number := sizes; first [ lra | interval with (i_prec 220) | by tie ].
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

(** Answers that move by at most D in l1, but perhaps not in every such way: counts. *)
Lemma proven_within near D : 0 < b -> (forall x y, near x y -> l1 x y <= D) -> D / b <= eps ->
  laplace_private b eps near.
Proof.
  move=> b0 within le; apply/(laplace_exact b0) => x y /within d; apply: Rle_trans le.
  by apply: Rmult_le_compat_r => //; apply: Rlt_le; apply: Rinv_0_lt_compat.
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

(** ** Categories *)

Section Response.
Variable T : finType.
Hypothesis two : (1 < #|T|)%nat.
Variable p : R.
Hypothesis p01 : 0 <= p <= 1.
Variables eps delta : R.

(** A public function takes a value to a category; the identity is one. *)
Definition after_hash (X : Type) (hash : X -> T) (x : X) : dist T := response two p01 (hash x).

Lemma response_proven : 0 <= eps -> (1 - p) / (INR #|T| - 1) <= p -> p <= exp eps * ((1 - p) / (INR #|T| - 1)) ->
  forall (X : Type) (hash : X -> T), dp eps 0 any_two (after_hash hash).
Proof.
  move=> e0 lo hi X hash x y _; have all := (response_exact two p01 (ltnW two) lo e0).2 hi.
  exact: all (hash x) (hash y) I.
Qed.

Lemma response_refuted : 0 <= eps -> (1 - p) / (INR #|T| - 1) <= p -> exp eps * ((1 - p) / (INR #|T| - 1)) < p ->
  ~ dp eps 0 any_two (response two p01).
Proof. by move=> e0 lo hi; rewrite (response_exact two p01 (ltnW two) lo e0) /other; lra. Qed.

Lemma response_delta_proven : 0 <= eps -> 0 <= delta -> (1 - p) / (INR #|T| - 1) <= p ->
  p - exp eps * ((1 - p) / (INR #|T| - 1)) <= delta -> dp eps delta any_two (response two p01).
Proof. by move=> e0 d0 lo hi; apply/(response_delta two p01 (ltnW two) lo e0 d0). Qed.

Lemma response_delta_refuted : 0 <= eps -> 0 <= delta -> (1 - p) / (INR #|T| - 1) <= p ->
  delta < p - exp eps * ((1 - p) / (INR #|T| - 1)) -> ~ dp eps delta any_two (response two p01).
Proof. by move=> e0 d0 lo hi; rewrite (response_delta two p01 (ltnW two) lo e0 d0) /other; lra. Qed.
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
Variable n : nat.
Variable eps : R.

(** Each bit costs at most s. *)
Lemma parity_proven s : equal_cost even_p q <= s -> equal_cost odd_p q <= s -> INR n * s <= eps ->
  dp eps 0 any_two (parity_bits e01 o01 q01 (n := n)).
Proof.
  move=> ce co le; apply/parity_bits_exact; apply: Rle_trans le; rewrite -sum_const.
  by apply: sum_le => i _; case: odd.
Qed.

(** n = 2m bits: even ones cost at least a, odd ones at least c. *)
Lemma parity_refuted m a c : n = m.*2 -> a <= equal_cost even_p q -> c <= equal_cost odd_p q ->
  eps < INR m * (a + c) -> ~ dp eps 0 any_two (parity_bits e01 o01 q01 (n := n)).
Proof.
  move=> nm ce co lt; rewrite parity_bits_exact nm sum_parity; have := pos_INR m; nra.
Qed.
End ParityClaims.

Lemma double_Z m : (0 <= m)%Z -> Z.to_nat (2 * m) = (Z.to_nat m).*2.
Proof. by move=> m0; rewrite -addnn -plusE; lia. Qed.

Section OneHotClaims.
Variables p q : R.
Hypothesis p01 : 0 < p < 1.
Hypothesis q01 : 0 < q < 1.
Variable n : nat.
Variable eps : R.

Lemma one_hot_proven a c : (1 < n)%nat -> p <= exp a * q -> 1 - p <= exp a * (1 - q) ->
  q <= exp c * p -> 1 - q <= exp c * (1 - p) -> 0 <= a + c -> a + c <= eps ->
  dp eps 0 any_two (fun j => equal_bits p01 q01 (one_hot (n := n) j)).
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
Lemma one_hot_odds : (1 < n)%nat -> 0 <= eps -> q <= p -> p * (1 - q) <= exp eps * (q * (1 - p)) ->
  dp eps 0 any_two (fun j => equal_bits p01 q01 (one_hot (n := n) j)).
Proof.
  move=> n1 e0 qp odds; apply/one_hot_exact => //.
  have small x y : 0 < x -> x <= y -> ln (x / y) <= 0.
    move=> x0 xy; rewrite -ln_1; apply: ln_mono; first by apply: Rdiv_lt_0_compat; lra.
    by apply: (Rmult_le_reg_r y); [lra | rewrite /Rdiv Rmult_assoc Rinv_l; lra].
  have large x y : 0 < x -> x <= y -> 0 <= ln (y / x).
    move=> x0 xy; rewrite -ln_1; apply: ln_mono; first lra.
    by apply: (Rmult_le_reg_r x); [lra | rewrite /Rdiv Rmult_assoc Rinv_l; lra].
  rewrite /fall /rise Rmax_left; last first.
    by apply: (Rle_trans _ 0); [apply: small; lra | apply: large; lra].
  rewrite Rmax_right; last by apply: (Rle_trans _ 0); [apply: small; lra | apply: large; lra].
  rewrite -ln_mult; try by apply: Rdiv_lt_0_compat; lra.
  apply/ln_le_exp; first by apply: Rmult_lt_0_compat; apply: Rdiv_lt_0_compat; lra.
  have d0 : 0 < q * (1 - p) by apply: Rmult_lt_0_compat; lra.
  apply: (Rmult_le_reg_r (q * (1 - p))) => //.
  by have -> : p / q * ((1 - q) / (1 - p)) * (q * (1 - p)) = p * (1 - q) by field; lra.
Qed.
End OneHotClaims.

(** ** Scores *)

Lemma rate_gt0 T : 0 < T -> 0 < 1 / T.
Proof. by move=> T0; apply: Rdiv_lt_0_compat; lra. Qed.

(** n tokens, each drawn from the softmax of logits between two limits. *)
Definition tokens (T : finType) (nonempty : (0 < #|T|)%nat) (rate : R) (n : nat) (u : 'I_n -> T -> R) :=
  product (fun i => exponential nonempty rate (u i)).

Definition all_in_cube (T : finType) (n : nat) (l w : R) (u v : 'I_n -> T -> R) : Prop :=
  forall i, cube_near l w (u i) (v i).

Lemma tokens_proven (T : finType) (nonempty : (0 < #|T|)%nat) rate n l w eps : 0 < rate ->
  INR n * (2 * rate * w) <= eps -> dp eps 0 (all_in_cube l w) (@tokens T nonempty rate n).
Proof.
  move=> r0 le u v near; apply: (@close_weaken _ (INR n * (2 * rate * w)) _ 0); [done | lra |].
  by apply: repeated_pure => i; apply: (exponential_cube nonempty r0 (Rle_refl _)).
Qed.
