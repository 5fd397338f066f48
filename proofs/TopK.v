(** * Choosing only among the k best

    Of the scores only the k largest can be chosen, among them by the exponential mechanism.  Which outputs are possible then
    depends on the input, so that no eps holds.

    Main theorem: [top_refuted]. *)

From Dpassay Require Import Prelude Finite Exponential.

Section Top.
Variable T : finType.
Variable r : R.
Variable k : nat.
Hypothesis k_gt0 : (0 < k)%nat.

(** [top u] has k outputs, and no other has a larger score; ties are broken in any way. *)
Definition top_rule (top : (T -> R) -> {set T}) : Prop :=
  forall u, #|top u| = k /\ forall s t, s \in top u -> t \notin top u -> u t <= u s.

Variable top : (T -> R) -> {set T}.
Hypothesis rule : top_rule top.

Definition top_total (u : T -> R) : R := \sum_(s in top u) exp (r * u s).

Lemma top_total_gt0 u : 0 < top_total u.
Proof.
  have : (0 < #|top u|)%nat by rewrite (rule u).1.
  case/card_gt0P=> s ins; rewrite /top_total (bigD1 s) //=; set rest := (X in _ + X).
  have : 0 <= rest by apply: sum_ge0 => i _; apply: Rlt_le; apply: exp_pos.
  by have := exp_pos (r * u s); lra.
Qed.

Definition top_mass (u : T -> R) (t : T) : R := if t \in top u then exp (r * u t) / top_total u else 0.

Lemma top_ge0 u t : 0 <= top_mass u t.
Proof.
  rewrite /top_mass; case: (t \in top u); last lra.
  by apply: Rlt_le; apply: Rdiv_lt_0_compat; [apply: exp_pos | apply: top_total_gt0].
Qed.

Lemma top_sum u : \sum_t top_mass u t = 1.
Proof.
  rewrite /top_mass -big_mkcond (eq_bigr (fun t => / top_total u * exp (r * u t))) => [|t _]; last exact: Rmult_comm.
  by rewrite sum_const_mult Rinv_l //; apply: Rgt_not_eq; apply: top_total_gt0.
Qed.

Definition top_choice (u : T -> R) : dist T := Dist (top_ge0 u) (top_sum u).

Theorem top_refuted eps l w : (k < #|T|)%nat -> 0 < w -> ~ dp eps 0 (cube_near l w) top_choice.
Proof.
  move=> few w0; have /card_gt0P [a _] : (0 < #|T|)%nat by apply: leq_trans few.
  pose u (s : T) := if s == a then l + w else l; pose v (s : T) := if s == a then l else l + w.
  have in_u : a \in top u.
    apply: contraT => out; have [size best] := rule u.
    have /card_gt0P [s ins] : (0 < #|top u|)%nat by rewrite size.
    have := best s a ins out; rewrite /u eqxx; case: eqP => [sa | _]; last lra.
    by rewrite sa (negbTE out) in ins.
  have out_v : a \notin top v.
    apply/negP => ins; have [size best] := rule v.
    have : (0 < #|~: top v|)%nat by rewrite cardsCs setCK size subn_gt0.
    case/card_gt0P => s; rewrite inE => out; have := best a s ins out.
    rewrite /v eqxx; case: eqP => [sa | _]; last lra.
    by rewrite -sa (negbTE out) in ins.
  apply: (@different_outputs_no_pure_dp _ _ eps _ _ u v a).
  - by split=> s; rewrite /u /v; case: eqP; lra.
  - by rewrite /= /top_mass in_u; apply: Rdiv_lt_0_compat; [apply: exp_pos | apply: top_total_gt0].
  - by rewrite /= /top_mass (negbTE out_v).
Qed.
End Top.
