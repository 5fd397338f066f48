(** * What every file imports: Coq's real numbers and MathComp's finite types and sums. *)

From mathcomp Require Export ssreflect ssrfun ssrbool eqtype ssrnat seq choice fintype finfun bigop finset.
From Coq Require Export Reals Lra Lia.
Export Set Implicit Arguments.
Export Unset Strict Implicit.
Export Set Warnings "-notation-overridden,-ambiguous-paths".
Global Open Scope R_scope.

Notation "\sum_ ( i 'in' A ) F" := (\big[Rplus/0%R]_(i in A) F%R) : R_scope.
Notation "\sum_ i F" := (\big[Rplus/0%R]_i F%R) : R_scope.
Notation "\prod_ i F" := (\big[Rmult/1%R]_i F%R) : R_scope.

Canonical Rplus_monoid := Monoid.Law (fun x y z => esym (Rplus_assoc x y z)) Rplus_0_l Rplus_0_r.
Canonical Rplus_comoid := Monoid.ComLaw Rplus_comm.
Canonical Rmult_monoid := Monoid.Law (fun x y z => esym (Rmult_assoc x y z)) Rmult_1_l Rmult_1_r.
Canonical Rmult_comoid := Monoid.ComLaw Rmult_comm.
Canonical Rmult_mulmonoid := Monoid.MulLaw Rmult_0_l Rmult_0_r.
Canonical Rplus_addmonoid := Monoid.AddLaw Rmult_plus_distr_r Rmult_plus_distr_l.

(** ** Finite sums and products of real numbers *)

Lemma sum_le (I : Type) (r : seq I) (p : pred I) (f g : I -> R) :
  (forall i, p i -> f i <= g i) ->
  \big[Rplus/0]_(i <- r | p i) f i <= \big[Rplus/0]_(i <- r | p i) g i.
Proof.
  move=> le_fg; apply: (big_ind2 (fun a b => a <= b)) => //; first exact: Rle_refl.
  by move=> a b c d ? ?; apply: Rplus_le_compat.
Qed.

Lemma sum_ge0 (I : Type) (r : seq I) (p : pred I) (f : I -> R) :
  (forall i, p i -> 0 <= f i) -> 0 <= \big[Rplus/0]_(i <- r | p i) f i.
Proof.
  move=> f0; apply: (big_ind (fun a => 0 <= a)) => //; first exact: Rle_refl.
  by move=> a b ? ?; apply: Rplus_le_le_0_compat.
Qed.

Lemma sum_const_mult (I : Type) (r : seq I) (p : pred I) c (f : I -> R) :
  \big[Rplus/0]_(i <- r | p i) (c * f i) = c * \big[Rplus/0]_(i <- r | p i) f i.
Proof. by rewrite big_distrr. Qed.

Lemma sum_add (I : Type) (r : seq I) (p : pred I) (f g : I -> R) :
  \big[Rplus/0]_(i <- r | p i) (f i + g i) =
  \big[Rplus/0]_(i <- r | p i) f i + \big[Rplus/0]_(i <- r | p i) g i.
Proof. exact: big_split. Qed.

(** One term of a sum whose other terms are not negative. *)
Lemma sum_ge_term (I : finType) (f : I -> R) i : (forall j, 0 <= f j) -> f i <= \sum_j f j.
Proof.
  move=> f0; rewrite (bigD1 i) //=; set rest := (X in _ + X).
  have : 0 <= rest by apply: sum_ge0.
  lra.
Qed.

Lemma sum_const (n : nat) (c : R) : \big[Rplus/0]_(i < n) c = INR n * c.
Proof.
  rewrite big_const_ord; elim: n => [|n IH]; first by rewrite /= Rmult_0_l.
  by rewrite iterS IH S_INR; lra.
Qed.

Lemma prod_gt0 (I : finType) (f : I -> R) : (forall i, 0 < f i) -> 0 < \prod_i f i.
Proof.
  move=> f0; apply: (big_ind (fun a => 0 < a)) => //; first lra.
  by move=> a b ? ?; apply: Rmult_lt_0_compat.
Qed.

Lemma prod_ge0 (I : finType) (f : I -> R) : (forall i, 0 <= f i) -> 0 <= \prod_i f i.
Proof.
  move=> f0; apply: (big_ind (fun a => 0 <= a)) => //; first lra.
  by move=> a b ? ?; apply: Rmult_le_pos.
Qed.

Lemma prod_le (I : finType) (f g : I -> R) : (forall i, 0 <= f i <= g i) -> \prod_i f i <= \prod_i g i.
Proof.
  move=> le_fg; suff : 0 <= \prod_i f i <= \prod_i g i by lra.
  apply: (big_ind2 (fun a b => 0 <= a <= b)) => //; first lra.
  by move=> a b c d ? ?; split; [apply: Rmult_le_pos; lra | apply: Rmult_le_compat; lra].
Qed.

(** The exponential turns sums into products. *)
Lemma exp_sum (I : finType) (f : I -> R) : \prod_i exp (f i) = exp (\sum_i f i).
Proof.
  by apply: esym; apply: (big_morph exp); [move=> a b; rewrite exp_plus | apply: exp_0].
Qed.

(** ** Order and the exponential *)

Lemma exp_le a b : a <= b -> exp a <= exp b.
Proof. by case=> [lt | ->]; [apply: Rlt_le; apply: exp_increasing | lra]. Qed.

Lemma exp_le_inv a b : exp a <= exp b -> a <= b.
Proof. by move=> le; apply: Rnot_lt_le => /exp_increasing; lra. Qed.

Lemma ln_le_exp a b : 0 < a -> (ln a <= b <-> a <= exp b).
Proof.
  move=> a0; rewrite -{2}(exp_ln a) //; split; [exact: exp_le | exact: exp_le_inv].
Qed.

Lemma ln_mono a b : 0 < a -> a <= b -> ln a <= ln b.
Proof. by move=> a0 [lt | ->]; [apply: Rlt_le; apply: ln_increasing | lra]. Qed.

(** Dimensions in certificates are written as [Z.to_nat 768], so that the number stays readable. *)
Lemma INR_Z (z : Z) : (0 <= z)%Z -> INR (Z.to_nat z) = IZR z.
Proof. by move=> z0; rewrite INR_IZR_INZ Z2Nat.id. Qed.

(** 1 if a proposition is true, 0 if not.  That every proposition is one or the other is among the axioms of Coq's real
    numbers. *)
Definition indicator (A : Prop) : R := if ClassicalDedekindReals.sig_not_dec A then 1 else 0.

Lemma indicator_true (A : Prop) : A -> indicator A = 1.
Proof. by rewrite /indicator; case: (ClassicalDedekindReals.sig_not_dec A) => [//|no] /= /no. Qed.

Lemma indicator_false (A : Prop) : ~ A -> indicator A = 0.
Proof. by rewrite /indicator; case: (ClassicalDedekindReals.sig_not_dec A) => [no|//] /= /no. Qed.

Lemma indicator_01 (A : Prop) : 0 <= indicator A <= 1.
Proof. by rewrite /indicator; case: (ClassicalDedekindReals.sig_not_dec A) => ? /=; lra. Qed.
