(** * How far apart in l1 the vectors of a region can be

    [I] has n elements, the coordinates.  Each region comes with its l1 diameter and a pair that attains it.

    Main theorems: [l2_ball_upper] and [l2_ball_pair] (2 C sqrt n), [l1_ball_upper] and [l1_ball_pair] (2 C),
    [cube_upper] and [cube_pair] (n times the width), [minmax_upper] and [minmax_pair] (n). *)

From Coquelicot Require Import Coquelicot.
From Dpassay Require Import Prelude LaplaceVector.

Section Diameters.
Variable I : finType.
Notation n := (INR #|I|).
Implicit Types x y : I -> R.

Definition in_l1 (C : R) x : Prop := \sum_i Rabs (x i) <= C.
Definition in_l2 (C : R) x : Prop := \sum_i (x i * x i) <= C * C.
Definition in_cube (l h : R) x : Prop := forall i, l <= x i <= h.

(** Vectors that are shifted and scaled to span 0 to 1, as DPNR does; a constant vector becomes zeros. *)
Definition minmax x : Prop :=
  in_cube 0 1 x /\ (((exists i, x i = 0) /\ (exists i, x i = 1)) \/ forall i, x i = 0).

Lemma abs_sqr (d : R) : Rabs d * Rabs d = d * d.
Proof. by rewrite -Rabs_mult Rabs_right //; apply: Rle_ge; apply: Rle_0_sqr. Qed.

(** Cauchy-Schwarz with a vector of ones. *)
Lemma cauchy (d : I -> R) : (\sum_i d i) * (\sum_i d i) <= n * \sum_i (d i * d i).
Proof.
  set s := \sum_i d i; have [n0 | n0] : n = 0 \/ 0 < n by have := pos_INR #|I|; lra.
  - have I0 : #|I| = 0%nat by apply: INR_eq.
    have -> : s = 0 by rewrite /s big1 // => i _; have := card0_eq I0 i; rewrite !inE.
    by rewrite n0; lra.
  - have : 0 <= \sum_i ((n * d i - s) * (n * d i - s)) by apply: sum_ge0 => i _; apply: Rle_0_sqr.
    have -> : \sum_i ((n * d i - s) * (n * d i - s)) = n * n * (\sum_i (d i * d i)) - 2 * n * s * s + n * (s * s).
      rewrite (eq_bigr (fun i => n * n * (d i * d i) + (- 2 * n * s * d i + s * s))); last by move=> i _; ring.
      by rewrite !sum_add !sum_const_mult sum_const_all -/s; ring.
    nra.
Qed.

(** The l1 diameter of the l2 ball is 2 C sqrt n. *)
Theorem l2_ball_upper C x y : 0 <= C -> in_l2 C x -> in_l2 C y -> l1 x y <= 2 * C * sqrt n.
Proof.
  move=> C0 bx by_; have n0 := pos_INR #|I|.
  have d2 : \sum_i (Rabs (x i - y i) * Rabs (x i - y i)) <= 4 * (C * C).
    apply: (Rle_trans _ (\sum_i (2 * (x i * x i) + 2 * (y i * y i)))).
      by apply: sum_le => i _; rewrite abs_sqr; have := Rle_0_sqr (x i + y i); rewrite /Rsqr; lra.
    by rewrite sum_add !sum_const_mult; move: bx by_; rewrite /in_l2; lra.
  have cs := cauchy (fun i => Rabs (x i - y i)).
  have l0 : 0 <= l1 x y by apply: sum_ge0 => i _; apply: Rabs_pos.
  rewrite -/(l1 x y) in cs.
  apply: Rsqr_incr_0_var; last by repeat apply: Rmult_le_pos; try lra; apply: sqrt_pos.
  rewrite /Rsqr; have -> : 2 * C * sqrt n * (2 * C * sqrt n) = 4 * (C * C) * (sqrt n * sqrt n) by ring.
  rewrite sqrt_sqrt //; nra.
Qed.

Definition spread (C : R) : I -> R := fun _ => C / sqrt n.

Theorem l2_ball_pair C : (0 < #|I|)%nat -> 0 <= C ->
  in_l2 C (spread C) /\ in_l2 C (fun i => - spread C i) /\ l1 (spread C) (fun i => - spread C i) = 2 * C * sqrt n.
Proof.
  move=> pos C0; have n0 : 0 < n by apply: lt_0_INR; apply/ltP.
  have s0 : 0 < sqrt n by apply: sqrt_lt_R0.
  have sq : sqrt n * sqrt n = n by apply: sqrt_sqrt; lra.
  have norm : n * (C / sqrt n * (C / sqrt n)) = C * C by rewrite -{1}sq; field; lra.
  rewrite /in_l2 /l1 /spread !sum_const_all; split; first lra; split; first lra.
  rewrite Rabs_right; last by apply: Rle_ge; have := Rinv_0_lt_compat _ s0; rewrite /Rdiv; nra.
  by rewrite -{1}sq; field; lra.
Qed.

(** The l1 ball: 2 C. *)
Theorem l1_ball_upper C x y : in_l1 C x -> in_l1 C y -> l1 x y <= 2 * C.
Proof.
  move=> bx by_; apply: (Rle_trans _ (\sum_i (Rabs (x i) + Rabs (y i)))).
    by apply: sum_le => i _; have := Rabs_triang (x i) (- y i); rewrite Rabs_Ropp.
  by rewrite sum_add; move: bx by_; rewrite /in_l1; lra.
Qed.

Definition axis (C : R) (j : I) : I -> R := fun i => if i == j then C else 0.

Lemma sum_axis (j : I) (f : I -> R) c : f j = c -> (forall i, i != j -> f i = 0) -> \sum_i f i = c.
Proof. by move=> <- f0; rewrite (bigD1 j) //= big1 ?Rplus_0_r. Qed.

Theorem l1_ball_pair C (j : I) : 0 <= C ->
  in_l1 C (axis C j) /\ in_l1 C (axis (- C) j) /\ l1 (axis C j) (axis (- C) j) = 2 * C.
Proof.
  move=> C0; rewrite /in_l1 /l1 /axis; repeat split.
  - by rewrite (@sum_axis j _ C); [lra | rewrite eqxx Rabs_right; lra | move=> i /negbTE ->; rewrite Rabs_R0].
  - by rewrite (@sum_axis j _ C); [lra | rewrite eqxx Rabs_left1; lra | move=> i /negbTE ->; rewrite Rabs_R0].
  - apply: (@sum_axis j); first by rewrite eqxx Rabs_right; lra.
    by move=> i /negbTE ->; rewrite Rminus_0_r Rabs_R0.
Qed.

(** A cube [l, h]^n, and so a linf ball: n times the width. *)
Theorem cube_upper l h x y : in_cube l h x -> in_cube l h y -> l1 x y <= n * (h - l).
Proof.
  move=> bx by_; rewrite -sum_const_all; apply: sum_le => i _.
  by have := bx i; have := by_ i; rewrite /Rabs; case: Rcase_abs => ?; lra.
Qed.

Theorem cube_pair l h : l <= h -> in_cube l h (fun _ => h) /\ in_cube l h (fun _ => l) /\
  l1 (fun _ : I => h) (fun _ => l) = n * (h - l).
Proof.
  by move=> lh; rewrite /l1 sum_const_all Rabs_right; repeat split; try lra; move=> i; lra.
Qed.

(** Vectors that span 0 to 1, at least two coordinates: n. *)
Theorem minmax_upper x y : minmax x -> minmax y -> l1 x y <= n.
Proof. by move=> [bx _] [by_ _]; have := cube_upper bx by_; rewrite Rminus_0_r Rmult_1_r. Qed.

Theorem minmax_pair (j k : I) : j != k ->
  minmax (axis 1 j) /\ minmax (fun i => 1 - axis 1 j i) /\ l1 (axis 1 j) (fun i => 1 - axis 1 j i) = n.
Proof.
  move=> neq; rewrite /minmax /in_cube /axis; split; [|split].
  - split; first by move=> i; case: eqP; lra.
    by left; split; [exists k; rewrite eq_sym (negbTE neq) | exists j; rewrite eqxx].
  - split; first by move=> i; case: eqP; lra.
    by left; split; [exists j; rewrite eqxx; lra | exists k; rewrite eq_sym (negbTE neq); lra].
  - rewrite /l1 -(Rmult_1_r n) -sum_const_all; apply: eq_bigr => i _.
    by case: eqP => _; rewrite /Rabs; case: Rcase_abs => ?; lra.
Qed.

(** Queries: how far l1 can be if another norm is bounded. *)
Theorem l2_query D x y : 0 <= D -> \sum_i ((x i - y i) * (x i - y i)) <= D * D -> l1 x y <= sqrt n * D.
Proof.
  move=> D0 d2; have n0 := pos_INR #|I|; have cs := cauchy (fun i => Rabs (x i - y i)).
  have l0 : 0 <= l1 x y by apply: sum_ge0 => i _; apply: Rabs_pos.
  rewrite -/(l1 x y) in cs.
  apply: Rsqr_incr_0_var; last by apply: Rmult_le_pos => //; apply: sqrt_pos.
  rewrite /Rsqr; have -> : sqrt n * D * (sqrt n * D) = (sqrt n * sqrt n) * (D * D) by ring.
  rewrite sqrt_sqrt //; move: cs.
  rewrite (eq_bigr (fun i => (x i - y i) * (x i - y i))); last by move=> i _; rewrite abs_sqr.
  nra.
Qed.
End Diameters.

(** T copies of a vector, each with noise of its own: T times as far apart. *)
Definition repeat (I : finType) (T : nat) (x : I -> R) : 'I_T * I -> R := fun ti => x ti.2.

Theorem repeat_l1 (I : finType) (T : nat) (x y : I -> R) :
  l1 (I := [finType of 'I_T * I]) (repeat x) (repeat y) = INR T * l1 x y.
Proof.
  rewrite /l1 /repeat -(pair_bigA _ (fun (t : 'I_T) i => Rabs (x i - y i))) /=.
  by rewrite sum_const.
Qed.
