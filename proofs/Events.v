(** * From boxes to every event

    Coquelicot has no measure theory, so the distribution of a vector is given by the probabilities of boxes (products of
    intervals), and the probability of any other set is its Lebesgue-Stieltjes outer measure: the greatest lower bound of
    the sums over countable covers by boxes.  On measurable sets that is the distribution itself (Caratheodory), which is
    the one step that is not formalized here.

    Main theorem: [every_event]: a factor that holds for boxes holds for every set of outputs. *)

From Coquelicot Require Import Coquelicot.
From Dpassay Require Import Prelude.

Section Events.
Variable V : Type.                              (* outputs *)
Variable box : Type.
Variable inside : box -> V -> Prop.

(** The sums of countable covers of the set [A]. *)
Definition cover_sums (P : box -> R) (A : V -> Prop) (s : R) : Prop :=
  exists c : nat -> box, (forall v, A v -> exists k, inside (c k) v) /\ is_series (fun k => P (c k)) s.

(** The probability of the set [A]. *)
Definition measure (P : box -> R) (A : V -> Prop) : Rbar := Glb_Rbar (cover_sums P A).

Variables P Q : box -> R.
Hypothesis P_ge0 : forall B, 0 <= P B.

Theorem every_event (g : R) : 0 < g -> (forall B, P B <= g * Q B) ->
  forall A, Rbar_le (measure P A) (Rbar_mult g (measure Q A)).
Proof.
  move=> g0 boxes A; rewrite /measure.
  have Q_ge0 B : 0 <= Q B by have := P_ge0 B; have := boxes B; nra.
  case: (Glb_Rbar_correct (cover_sums P A)) => lbP _; case: (Glb_Rbar_correct (cover_sums Q A)) => lbQ glbQ.
  have each s : cover_sums Q A s -> Rbar_le (Glb_Rbar (cover_sums P A)) (Finite (g * s)).
    move=> [c [cover sum]].
    have sumP : ex_series (fun k => P (c k)).
      apply: (ex_series_le (K := R_AbsRing) (V := R_CompleteNormedModule) _ (fun k => g * Q (c k))).
        by move=> k; rewrite /norm /= /abs /= Rabs_right; [apply: boxes | apply: Rle_ge; apply: P_ge0].
      by exists (g * s); apply: (is_series_scal_l (K := R_AbsRing) (V := R_NormedModule) g _ s sum).
    apply: (Rbar_le_trans _ (Series (fun k => P (c k)))).
      by apply: lbP; exists c; split=> //; apply: Series_correct.
    rewrite -(is_series_unique _ _ sum) -Series_scal_l; apply: Series_le.
      by move=> k; split; [apply: P_ge0 | apply: boxes].
    by apply: ex_series_scal_l; exists s.
  have below : is_lb_Rbar (cover_sums Q A) (Rbar_mult (/ g) (Glb_Rbar (cover_sums P A))).
    move=> s /each; have i0 := Rinv_0_lt_compat g g0.
    case: (Glb_Rbar (cover_sums P A)) => [p||] //=.
    - move=> le; have := Rmult_le_compat_l (/ g) _ _ (Rlt_le _ _ i0) le.
      by rewrite -Rmult_assoc Rinv_l ?Rmult_1_l //; lra.
    - by move=> _; case: Rle_dec => ? /=; [case: Rle_lt_or_eq_dec => ? //=; lra | lra].
  have := glbQ _ below.
  case: (Glb_Rbar (cover_sums P A)) => [p||]; case: (Glb_Rbar (cover_sums Q A)) => [s||] //=;
    have i0 := Rinv_0_lt_compat g g0;
    repeat (case: Rle_dec => ? //=); repeat (case: Rle_lt_or_eq_dec => ? //=); try lra.
  move=> le; have := Rmult_le_compat_l g _ _ (Rlt_le _ _ g0) le.
  by rewrite -Rmult_assoc Rinv_r ?Rmult_1_l //; lra.
Qed.
End Events.
