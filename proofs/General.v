(** * Differential privacy for outputs of any kind

    Numbers, vectors, texts of any length: what [Finite.v] and the files after it show for finitely many outputs, here for
    all.  A space says which bounded functions of an output are measurable, and a law is the mean of these functions, as
    Lebesgue's integral defines it: linear, monotone, and 1 for the constant 1.  An event is a set whose indicator is
    measurable.  Nothing else is assumed of spaces and laws, so that every probability measure is an example.

    Main theorems: [general_tests] (events and functions with values in [0, 1]), [general_post_processing],
    [general_composition], [general_group], [general_guessing], and [general_finite] (finitely many outputs are a case). *)

From Dpassay Require Import Prelude Finite Composition.

Record space := Space {
  outputs :> Type;
  measurable : (outputs -> R) -> Prop;
  constants : forall c, measurable (fun _ => c);
  sums : forall g h, measurable g -> measurable h -> measurable (fun v => g v + h v);
  multiples : forall c g, measurable g -> measurable (fun v => c * g v);
  minima : forall g h, measurable g -> measurable h -> measurable (fun v => Rmin (g v) (h v));
  levels : forall c g, measurable g -> measurable (fun v => indicator (c <= g v)) }.

Record law (V : space) := Law {
  mean :> (V -> R) -> R;
  mean_one : mean (fun _ => 1) = 1;
  mean_add : forall g h, measurable g -> measurable h -> mean (fun v => g v + h v) = mean g + mean h;
  mean_scale : forall c g, measurable g -> mean (fun v => c * g v) = c * mean g;
  mean_le : forall g h, measurable g -> measurable h -> (forall v, g v <= h v) -> mean g <= mean h }.

(** The papers' definition: for every event. *)
Definition event (V : space) (A : V -> Prop) : Prop := measurable (fun v => indicator (A v)).
Definition chance (V : space) (P : law V) (A : V -> Prop) : R := P (fun v => indicator (A v)).
Definition general_close (V : space) (eps delta : R) (P Q : law V) : Prop :=
  forall A : V -> Prop, event A -> chance P A <= exp eps * chance Q A + delta.
Definition general_dp (X : Type) (V : space) (eps delta : R) (near : X -> X -> Prop) (M : X -> law V) : Prop :=
  forall x y, near x y -> general_close eps delta (M x) (M y).

(** ** Functions with values in [0, 1] are means of events *)

Definition stairs (n : nat) (y : R) : R := \big[Rplus/0]_(k < n) indicator (INR k.+1 <= y).

Lemma stairs_step n y : stairs n.+1 y = stairs n y + indicator (INR n.+1 <= y).
Proof. by rewrite /stairs big_ord_recr. Qed.

Lemma stairs_most n y : stairs n y <= INR n.
Proof.
  elim: n => [|n IH]; first by rewrite /stairs big_ord0 /=; lra.
  by rewrite stairs_step; have := indicator_01 (INR n.+1 <= y); have := S_INR n; lra.
Qed.

Lemma stairs_all n y : INR n <= y -> stairs n y = INR n.
Proof.
  elim: n => [|n IH] le; first by rewrite /stairs big_ord0.
  by have := S_INR n => next; rewrite stairs_step indicator_true // IH; lra.
Qed.

Lemma stairs_below n y : 0 <= y -> stairs n y <= y.
Proof.
  move=> y0; elim: n => [|n IH]; first by rewrite /stairs big_ord0.
  case: (Rle_dec (INR n.+1) y) => le; first by apply: Rle_trans (stairs_most _ _) le.
  by rewrite stairs_step (indicator_false le); lra.
Qed.

Lemma stairs_above n y : y <= INR n -> y <= stairs n y + 1.
Proof.
  elim: n => [|n IH] le; first by rewrite /stairs big_ord0; move: le => /=; lra.
  rewrite stairs_step; have := indicator_01 (INR n.+1 <= y); case: (Rle_dec y (INR n)) => [/IH | ]; first lra.
  by have := S_INR n => next lt; rewrite stairs_all; lra.
Qed.

Lemma sum_const_card (J : finType) (c : R) : \sum_(j in J) c = INR #|J| * c.
Proof.
  rewrite big_const; elim: #|_| => [|k IH]; first by rewrite /= Rmult_0_l.
  by rewrite iterS IH S_INR; lra.
Qed.

Section Means.
Variable V : space.

Lemma mean_const (P : law V) c : P (fun _ => c) = c.
Proof.
  have -> : (fun _ : V => c) = (fun v => c * (fun _ => 1) v).
    by apply: FunctionalExtensionality.functional_extensionality => v; ring.
  by rewrite (mean_scale P c (constants V 1)) mean_one; ring.
Qed.

Lemma stairs_measurable n (g : V -> R) c : measurable g -> measurable (fun v => stairs n (c * g v)).
Proof.
  move=> mg; elim: n => [|n IH].
    have -> : (fun v => stairs 0 (c * g v)) = fun _ => 0; last exact: constants.
    by apply: FunctionalExtensionality.functional_extensionality => v; rewrite /stairs big_ord0.
  have -> : (fun v => stairs n.+1 (c * g v)) = fun v => stairs n (c * g v) + indicator (INR n.+1 <= c * g v).
    by apply: FunctionalExtensionality.functional_extensionality => v; rewrite stairs_step.
  by apply: sums => //; apply: levels; apply: multiples.
Qed.

Lemma stairs_close eps delta (P Q : law V) n (g : V -> R) c : measurable g -> general_close eps delta P Q ->
  P (fun v => stairs n (c * g v)) <= exp eps * Q (fun v => stairs n (c * g v)) + INR n * delta.
Proof.
  move=> mg closePQ; elim: n => [|n IH].
    have -> : (fun v => stairs 0 (c * g v)) = fun _ => 0.
      by apply: FunctionalExtensionality.functional_extensionality => v; rewrite /stairs big_ord0.
    by rewrite !mean_const /=; lra.
  have ml : measurable (fun v => indicator (INR n.+1 <= c * g v)) by apply: levels; apply: multiples.
  have -> : (fun v => stairs n.+1 (c * g v)) = fun v => stairs n (c * g v) + indicator (INR n.+1 <= c * g v).
    by apply: FunctionalExtensionality.functional_extensionality => v; rewrite stairs_step.
  rewrite (_ : INR n.+1 * delta = INR n * delta + delta); last by rewrite S_INR; ring.
  rewrite !mean_add //; try exact: stairs_measurable.
  have := closePQ (fun v => INR n.+1 <= c * g v) ml; rewrite /chance; lra.
Qed.

Theorem general_tests eps delta (P Q : law V) : general_close eps delta P Q <->
  forall g : V -> R, measurable g -> (forall v, 0 <= g v <= 1) -> P g <= exp eps * Q g + delta.
Proof.
  split=> [closePQ g mg g01 | tests A mA]; last by apply: tests => // v; apply: indicator_01.
  apply: Rnot_lt_le => more; have e0 := exp_pos eps.
  have [n [small n_gt0]] := archimed_cor1 (P g - (exp eps * Q g + delta)) ltac:(lra).
  have n0 : 0 < INR n by apply: lt_0_INR.
  have ms := stairs_measurable n (INR n) mg; have := stairs_close n (INR n) mg closePQ.
  have below : Q (fun v => stairs n (INR n * g v)) <= INR n * Q g.
    rewrite -mean_scale //; apply: mean_le => //; first exact: multiples.
    by move=> v; apply: stairs_below; have := g01 v; nra.
  have above : INR n * P g <= P (fun v => stairs n (INR n * g v)) + 1.
    rewrite -mean_scale // -[X in _ <= _ + X](mean_const P 1) -mean_add //; last exact: constants.
    apply: mean_le => [||v]; [exact: multiples | by apply: sums => //; apply: constants |].
    by apply: stairs_above; have := g01 v; nra.
  have scaled := Rmult_lt_compat_l _ _ _ n0 small; rewrite Rinv_r in scaled; last lra.
  nra.
Qed.
End Means.

(** ** Post-processing *)

(** From each output v another is drawn with the law [K v]. *)
Definition kernel (V U : space) (K : V -> law U) : Prop := forall h : U -> R, measurable h -> measurable (fun v => K v h).

Section After.
Variables V U : space.
Variable K : V -> law U.
Hypothesis kernelK : kernel K.
Variable P : law V.

Definition after_mean (h : U -> R) : R := P (fun v => K v h).

Lemma after_one : after_mean (fun _ => 1) = 1.
Proof.
  rewrite /after_mean -[RHS](mean_one P); congr (mean P).
  by apply: FunctionalExtensionality.functional_extensionality => v; apply: mean_one.
Qed.

Lemma after_add g h : measurable g -> measurable h -> after_mean (fun u => g u + h u) = after_mean g + after_mean h.
Proof.
  move=> mg mh; rewrite /after_mean -mean_add; try exact: kernelK; congr (mean P).
  by apply: FunctionalExtensionality.functional_extensionality => v; apply: mean_add.
Qed.

Lemma after_scale c g : measurable g -> after_mean (fun u => c * g u) = c * after_mean g.
Proof.
  move=> mg; rewrite /after_mean -mean_scale; last exact: kernelK; congr (mean P).
  by apply: FunctionalExtensionality.functional_extensionality => v; apply: mean_scale.
Qed.

Lemma after_le g h : measurable g -> measurable h -> (forall u, g u <= h u) -> after_mean g <= after_mean h.
Proof. by move=> mg mh le; apply: mean_le => [||v]; [exact: kernelK | exact: kernelK | apply: mean_le]. Qed.

Definition after : law U := Law after_one after_add after_scale after_le.
End After.

Lemma chance_01 (V : space) (P : law V) (A : V -> Prop) : event A -> 0 <= chance P A <= 1.
Proof.
  move=> mA; have lo := mean_le P (constants V 0) mA; have hi := mean_le P mA (constants V 1).
  rewrite !mean_const in lo hi; split; [apply: lo => v | apply: hi => v]; by case: (indicator_01 (A v)).
Qed.

Theorem general_post_processing (V U : space) eps delta (P Q : law V) (K : V -> law U) (kernelK : kernel K) :
  general_close eps delta P Q -> general_close eps delta (after kernelK P) (after kernelK Q).
Proof.
  move=> /general_tests tests A mA; apply: tests => [|v]; first exact: kernelK.
  exact: (chance_01 (K v) mA).
Qed.

(** ** Adaptive composition *)

(** v is drawn from [P] and u from [K v]; the probability that (v, u) is in [E] is the mean of that of its section at v. *)
Definition joint_chance (V U : space) (P : law V) (K : V -> law U) (E : V -> U -> Prop) : R := P (fun v => chance (K v) (E v)).

Theorem general_composition (V U : space) eps1 delta1 eps2 delta2 (P Q : law V) (K L : V -> law U) (E : V -> U -> Prop) :
  (forall v, event (E v)) -> measurable (fun v => chance (K v) (E v)) -> measurable (fun v => chance (L v) (E v)) ->
  general_close eps1 delta1 P Q -> (forall v, general_close eps2 delta2 (K v) (L v)) -> 0 <= delta2 ->
  joint_chance P K E <= exp (eps1 + eps2) * joint_chance Q L E + (delta1 + delta2).
Proof.
  move=> mE mK mL /general_tests tests second d2; rewrite /joint_chance exp_plus.
  have e1 := exp_pos eps1; have e2 := exp_pos eps2.
  pose l v := chance (L v) (E v); pose g v := Rmin 1 (exp eps2 * l v).
  have mg : measurable g by apply: minima; [exact: constants | exact: multiples].
  have l0 v : 0 <= l v by case: (chance_01 (L v) (mE v)).
  have g01 v : 0 <= g v <= 1.
    by rewrite /g; split; [apply: Rmin_glb; [lra | apply: Rmult_le_pos => //; lra] | apply: Rmin_l].
  have first : P (fun v => chance (K v) (E v)) <= P g + delta2.
    rewrite -[X in _ <= _ + X](mean_const P delta2) -mean_add //; last exact: constants.
    apply: mean_le => [//||v]; first by apply: sums => //; apply: constants.
    have := second v (E v) (mE v); have := chance_01 (K v) (mE v); rewrite -/(l v) /g /Rmin.
    by case: Rle_dec => ?; lra.
  have last : Q g <= exp eps2 * Q l.
    by rewrite -mean_scale //; apply: mean_le => [//||v]; [exact: multiples | exact: Rmin_r].
  rewrite -[X in _ <= _ * mean Q X + _]/l.
  have := tests g mg g01; have := Rmult_le_compat_l _ _ _ (Rlt_le _ _ e1) last; lra.
Qed.

(** ** Groups *)

Theorem general_group (X : Type) (V : space) eps delta (near : X -> X -> Prop) (M : X -> law V) k :
  general_dp eps delta near M -> general_dp (INR k * eps) (delta * growth eps k) (steps near k) M.
Proof.
  move=> dpM; elim: k => [|k IH] x y.
    by move=> -> A mA; rewrite /= Rmult_0_l exp_0; lra.
  case=> z [near_xz steps_zy] A mA; rewrite S_INR.
  have := dpM x z near_xz A mA; have := IH z y steps_zy A mA; have := exp_pos eps.
  rewrite Rmult_plus_distr_r Rmult_1_l exp_plus /=; nra.
Qed.

(** ** The guessing game *)

(** The rule names the input j on the event [named j].  Of m inputs, drawn uniformly, a share of at most
    e^eps / (e^eps + m - 1) of the guesses is right: [right] and [guessed] are m times their probabilities. *)
Theorem general_guessing (J : finType) (V : space) eps (M : J -> law V) (named : J -> V -> Prop) :
  (forall j, event (named j)) -> 0 <= eps -> (0 < #|J|)%nat -> general_dp eps 0 any_two M ->
  let right := \sum_j chance (M j) (named j) in
  let guessed := \sum_i (\sum_j chance (M i) (named j)) in
  right <= exp eps / (exp eps + INR #|J| - 1) * guessed.
Proof.
  move=> mn eps0 nonempty dpM; have e1 : 1 <= exp eps by rewrite -exp_0; apply: exp_le.
  have m1 : 1 <= INR #|J| by have := nonempty => /leP /le_INR.
  rewrite /= exchange_big -sum_const_mult; apply: sum_le => j _.
  apply: (Rmult_le_reg_r (exp eps + INR #|J| - 1)); first lra.
  have -> : exp eps / (exp eps + INR #|J| - 1) * (\sum_i chance (M i) (named j)) * (exp eps + INR #|J| - 1) =
            exp eps * \sum_i chance (M i) (named j) by field; lra.
  set p := chance (M j) (named j).
  have const : \big[Rplus/0]_(i | i != j) p = (INR #|J| - 1) * p.
    have := sum_const_card J p; rewrite (bigD1 j) //=; lra.
  have others : (INR #|J| - 1) * p <= exp eps * \big[Rplus/0]_(i | i != j) chance (M i) (named j).
    by rewrite -const -sum_const_mult; apply: sum_le => i _; have := dpM j i I _ (mn j); rewrite -/p; lra.
  rewrite (bigD1 j) //= -/p; move: others; set rest := \big[Rplus/0]_(_ | _) _ => others.
  have -> : p * (exp eps + INR #|J| - 1) = exp eps * p + (INR #|J| - 1) * p by ring.
  by rewrite Rmult_plus_distr_l; apply: Rplus_le_compat_l.
Qed.

(** ** Finitely many outputs *)

Definition finite_space (T : finType) : space :=
  @Space T (fun _ => True) (fun _ => I) (fun _ _ _ _ => I) (fun _ _ _ => I) (fun _ _ _ _ => I) (fun _ _ _ => I).

Section FiniteLaw.
Variable T : finType.
Variable P : dist T.

Definition finite_mean (g : finite_space T -> R) : R := \sum_t (P t * g t).

Lemma finite_one : finite_mean (fun _ => 1) = 1.
Proof. by rewrite -[RHS](mass_sum P); apply: eq_bigr => t _; ring. Qed.

Lemma finite_add g h : @measurable (finite_space T) g -> @measurable (finite_space T) h ->
  finite_mean (fun t => g t + h t) = finite_mean g + finite_mean h.
Proof. by move=> _ _; rewrite /finite_mean -sum_add; apply: eq_bigr => t _; ring. Qed.

Lemma finite_scale c g : @measurable (finite_space T) g -> finite_mean (fun t => c * g t) = c * finite_mean g.
Proof. by move=> _; rewrite /finite_mean -sum_const_mult; apply: eq_bigr => t _; ring. Qed.

Lemma finite_le g h : @measurable (finite_space T) g -> @measurable (finite_space T) h -> (forall t, g t <= h t) ->
  finite_mean g <= finite_mean h.
Proof. by move=> _ _ le; apply: sum_le => t _; apply: Rmult_le_compat_l; [apply: mass_ge0 | apply: le]. Qed.

Definition finite_law : law (finite_space T) := Law finite_one finite_add finite_scale finite_le.
End FiniteLaw.

Theorem general_finite (T : finType) eps delta (P Q : dist T) :
  general_close eps delta (finite_law P) (finite_law Q) <-> close eps delta P Q.
Proof.
  have pr (W : dist T) (E : {set T}) : chance (finite_law W) (fun t => t \in E) = Pr W E.
    rewrite Pr_as_sum; apply: eq_bigr => t _; congr (_ * _).
    by case E_t : (t \in E); [rewrite indicator_true | rewrite indicator_false].
  split=> [closePQ E | /hockey_stick le].
    by have := closePQ (fun t => t \in E) I; rewrite !pr.
  apply/general_tests => g _ g01; have := hockey_test eps P Q g01; rewrite /= /finite_mean; lra.
Qed.
