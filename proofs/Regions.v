(** * The exact eps of Laplace noise on a region, any two vectors of which are neighbours

    [exact_eps b region e] says that e is the least eps: eps-DP holds if and only if e <= eps.

    Main theorems: [exact_on_l2], [exact_on_l1], [exact_on_cube], [exact_on_minmax], their repetitions [exact_copies],
    [exact_for_l1_query], [exact_for_group], [exact_for_counts], and [exact_rows] (neighbours that differ in one coordinate). *)

From Coquelicot Require Import Coquelicot.
From Dpassay Require Import Prelude Composition Laplace LaplaceVector Diameters.

Section Regions.
Variable I : finType.
Variable b : R.
Hypothesis b_gt0 : 0 < b.

Definition both (region : (I -> R) -> Prop) (x y : I -> R) : Prop := region x /\ region y.

Definition exact_eps (near : (I -> R) -> (I -> R) -> Prop) (e : R) : Prop :=
  forall eps, laplace_private b eps near <-> e <= eps.

(** A diameter that is attained gives the exact eps. *)
Lemma exact_of_diameter (near : (I -> R) -> (I -> R) -> Prop) D x y :
  (forall x y, near x y -> l1 x y <= D) -> near x y -> l1 x y = D -> exact_eps near (D / b).
Proof.
  move=> upper near_xy attained eps; have i0 := Rinv_0_lt_compat b b_gt0.
  rewrite (laplace_exact b_gt0); split=> [le | le u v near_uv].
  - by rewrite -attained; apply: le.
  - by apply: Rle_trans le; apply: Rmult_le_compat_r; [lra | apply: upper].
Qed.

Theorem exact_on_l2 C : (0 < #|I|)%nat -> 0 <= C -> exact_eps (both (in_l2 C)) (2 * C * sqrt (INR #|I|) / b).
Proof.
  move=> pos C0; have [bx [by_ d]] := l2_ball_pair pos C0.
  by apply: (exact_of_diameter _ _ d) => // x y [? ?]; apply: l2_ball_upper.
Qed.

Theorem exact_on_l1 C : (0 < #|I|)%nat -> 0 <= C -> exact_eps (both (in_l1 C)) (2 * C / b).
Proof.
  move=> /card_gt0P [j _] C0; have [bx [by_ d]] := l1_ball_pair j C0.
  by apply: (exact_of_diameter _ _ d) => // x y [? ?]; apply: l1_ball_upper.
Qed.

Theorem exact_on_cube l h : l <= h -> exact_eps (both (in_cube l h)) (INR #|I| * (h - l) / b).
Proof.
  move=> lh; have [bx [by_ d]] := cube_pair I lh.
  by apply: (exact_of_diameter _ _ d) => // x y [? ?]; apply: cube_upper.
Qed.

Theorem exact_on_minmax : (1 < #|I|)%nat -> exact_eps (both (@minmax I)) (INR #|I| / b).
Proof.
  move=> /card_gt1P [j [k [_ _ neq]]]; have [bx [by_ d]] := minmax_pair neq.
  by apply: (exact_of_diameter _ _ d) => // x y [? ?]; apply: minmax_upper.
Qed.

(** Answers to a query that two neighbours move by at most D in l1. *)
Definition l1_near (D : R) (x y : I -> R) : Prop := l1 x y <= D.

Theorem exact_for_l1_query D : (0 < #|I|)%nat -> 0 <= D -> exact_eps (l1_near D) (D / b).
Proof.
  move=> /card_gt0P [j _] D0.
  have d : l1 (axis D j) (fun _ => 0) = D.
    apply: (@sum_axis _ j); first by rewrite /axis eqxx Rminus_0_r Rabs_right //; lra.
    by move=> i /negbTE neq; rewrite /axis neq Rminus_0_r Rabs_R0.
  by apply: (exact_of_diameter _ _ d) => //; rewrite /l1_near d; lra.
Qed.

(** Counts: the answers are whole numbers, so that the distance D counts as the largest whole number m up to it. *)
Definition whole (x : I -> R) : Prop := forall i, exists k : Z, x i = IZR k.
Definition counts_near (D : R) (x y : I -> R) : Prop := whole x /\ whole y /\ l1 x y <= D.

Lemma whole_l1 x y : whole x -> whole y -> exists k : Z, l1 x y = IZR k.
Proof.
  move=> wx wy; apply: (big_ind (fun s => exists k : Z, s = IZR k)); first by exists 0%Z.
    by move=> _ _ [j ->] [k ->]; exists (j + k)%Z; rewrite plus_IZR.
  by move=> i _; have [j ->] := wx i; have [k ->] := wy i; exists (Z.abs (j - k)); rewrite abs_IZR minus_IZR.
Qed.

Theorem exact_for_counts (m : Z) D : (0 < #|I|)%nat -> (0 <= m)%Z -> IZR m <= D < IZR m + 1 ->
  exact_eps (counts_near D) (IZR m / b).
Proof.
  move=> /card_gt0P [j _] /IZR_le m0 mD.
  have d : l1 (axis (IZR m) j) (fun _ => 0) = IZR m.
    apply: (@sum_axis _ j); first by rewrite /axis eqxx Rminus_0_r Rabs_right //; lra.
    by move=> i /negbTE neq; rewrite /axis neq Rminus_0_r Rabs_R0.
  apply: (exact_of_diameter _ _ d) => [x y [wx [wy le]]|].
    have [k is_k] := whole_l1 wx wy; rewrite is_k in le *; apply: IZR_le; apply/Z.lt_succ_r.
    by apply: lt_IZR; rewrite succ_IZR; lra.
  split; [|split]; last by rewrite d; lra.
  - by move=> i; rewrite /axis; case: eqP => _; [exists m | exists 0%Z].
  - by move=> i; exists 0%Z.
Qed.

(** Vectors of a cube that differ in one coordinate. *)
Definition rows (l h : R) (x y : I -> R) : Prop :=
  in_cube l h x /\ in_cube l h y /\ exists j, forall i, i != j -> x i = y i.

Theorem exact_rows l h : (0 < #|I|)%nat -> l <= h -> exact_eps (rows l h) ((h - l) / b).
Proof.
  move=> /card_gt0P [j _] lh.
  have d : l1 (fun i => if i == j then h else l) (fun _ => l) = h - l.
    apply: (@sum_axis _ j); first by rewrite eqxx Rabs_right //; lra.
    by move=> i /negbTE ->; rewrite Rminus_eq_0 Rabs_R0.
  apply: (exact_of_diameter _ _ d) => [x y [bx [by_ [k same]]]|].
    rewrite /l1 (@sum_axis _ k _ (Rabs (x k - y k))) //; last by move=> i /same ->; rewrite Rminus_eq_0 Rabs_R0.
    by have := bx k; have := by_ k; rewrite /Rabs; case: Rcase_abs => ?; lra.
  split; [|split]; [by move=> i; case: eqP; lra | by move=> i; lra | by exists j => i /negbTE ->].
Qed.
End Regions.

(** ** T copies of a vector, each with noise of its own *)

Definition copies (I : finType) (T : nat) (near : (I -> R) -> (I -> R) -> Prop) (x y : 'I_T * I -> R) : Prop :=
  exists u v, near u v /\ x = repeat u /\ y = repeat v.

Theorem exact_copies (I : finType) (T : nat) b (near : (I -> R) -> (I -> R) -> Prop) e : 0 < b -> (0 < T)%nat ->
  exact_eps b near e -> exact_eps (I := [finType of 'I_T * I]) b (copies near) (INR T * e).
Proof.
  move=> b0 T_gt0 exact eps; have T0 : 0 < INR T by apply: lt_0_INR; apply/ltP.
  have scaled (u v : I -> R) : l1 (I := [finType of 'I_T * I]) (repeat u) (repeat v) / b <= eps <->
                               l1 u v / b <= eps / INR T.
    rewrite repeat_l1; have -> : INR T * l1 u v / b = l1 u v / b * INR T by field; lra.
    split=> le.
    - apply: (Rmult_le_reg_r (INR T)) => //; have -> : eps / INR T * INR T = eps by field; lra.
      by [].
    - have := Rmult_le_compat_r (INR T) _ _ (Rlt_le _ _ T0) le.
      by have -> : eps / INR T * INR T = eps by field; lra.
  have -> : INR T * e <= eps <-> e <= eps / INR T.
    split=> le; first by apply: (Rmult_le_reg_l (INR T)) => //; have -> : INR T * (eps / INR T) = eps by field; lra.
    have := Rmult_le_compat_l (INR T) _ _ (Rlt_le _ _ T0) le.
    by have -> : INR T * (eps / INR T) = eps by field; lra.
  rewrite -exact !(laplace_exact b0); split=> [le u v near_uv | le _ _ [u [v [near_uv [-> ->]]]]].
  - by apply/scaled; apply: le; exists u, v.
  - by apply/scaled; apply: le.
Qed.

(** ** Groups *)

(** k records move the answers to a query k times as far at most, and can move them so far. *)
Theorem exact_for_group (I : finType) b D k : 0 < b -> (0 < #|I|)%nat -> 0 <= D ->
  exact_eps b (steps (l1_near (I := I) D) k) (INR k * D / b).
Proof.
  move=> b0 /card_gt0P [j _] D0.
  have far n : l1 (axis (INR n * D) j) (fun _ => 0) = INR n * D.
    have n0 : 0 <= INR n * D by apply: Rmult_le_pos => //; apply: pos_INR.
    apply: (@sum_axis _ j); first by rewrite /axis eqxx Rminus_0_r Rabs_right //; lra.
    by move=> i /negbTE neq; rewrite /axis neq Rminus_0_r Rabs_R0.
  apply: (exact_of_diameter b0 _ _ (far k)) => [x y|].
  - elim: k x => [|n IH] x /=.
      by move=> ->; apply: Req_le; rewrite Rmult_0_l; apply: big1 => i _; rewrite Rminus_eq_0 Rabs_R0.
    case=> z [near /IH rest]; rewrite -/(INR n.+1) S_INR.
    have : l1 x y <= l1 x z + l1 z y; last by move: near; rewrite /l1_near; lra.
    rewrite /l1 -sum_add; apply: sum_le => i _.
    have -> : x i - y i = (x i - z i) + (z i - y i) by ring.
    exact: Rabs_triang.
  - elim: k => [|n IH] /=.
      by apply: FunctionalExtensionality.functional_extensionality => i; rewrite /axis Rmult_0_l; case: eqP.
    exists (axis (INR n * D) j); split=> //; rewrite -/(INR n.+1) S_INR /l1_near /l1; apply: Req_le; apply: (@sum_axis _ j).
      by rewrite /axis !eqxx Rabs_right; lra.
    by move=> i /negbTE neq; rewrite /axis neq Rminus_0_r Rabs_R0.
Qed.
