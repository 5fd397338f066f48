(** * A value that is shown as it is, with some probability

    With probability [p] the output is the value itself, otherwise nothing.  This is (0, p)-DP, and no smaller delta holds
    whatever eps is: a small delta alone does not keep anybody from being published.

    Main theorems: [leak_exact] (one value), [leak_rows] (the value of each person, shown independently). *)

From Dpassay Require Import Prelude Finite Composition.

Section Leak.
Variable X : Type.
Variable p : R.
Hypothesis p01 : 0 <= p <= 1.

(** The probability of an event, for the value x; [None] stands for no output. *)
Definition leaked (x : X) (A : option X -> Prop) : R := p * indicator (A (Some x)) + (1 - p) * indicator (A None).

Definition leak_private (eps delta : R) (near : X -> X -> Prop) : Prop :=
  forall x y, near x y -> forall A, leaked x A <= exp eps * leaked y A + delta.

Lemma leak_upper eps delta near : 0 <= eps -> p <= delta -> leak_private eps delta near.
Proof.
  move=> eps0 le x y _ A; have e1 : 1 <= exp eps by rewrite -exp_0; apply: exp_le.
  rewrite /leaked; have := indicator_01 (A (Some x)); have := indicator_01 (A (Some y)); have := indicator_01 (A None).
  set none := indicator (A None); set of_x := indicator (A (Some x)); set of_y := indicator (A (Some y)) => n01 y01 x01.
  have : 0 <= (exp eps - 1) * (p * of_y + (1 - p) * none).
    by apply: Rmult_le_pos; [lra | apply: Rplus_le_le_0_compat; apply: Rmult_le_pos; lra].
  have : 0 <= p * of_y by apply: Rmult_le_pos; lra.
  have : 0 <= p * (1 - of_x) by apply: Rmult_le_pos; lra.
  lra.
Qed.

Theorem leak_exact eps delta (near : X -> X -> Prop) x y : 0 <= eps -> near x y -> x <> y ->
  (leak_private eps delta near <-> p <= delta).
Proof.
  move=> eps0 near_xy differ; split=> [priv | le]; last exact: leak_upper.
  have other : Some y <> Some x by case=> same; apply: differ.
  have := priv x y near_xy (fun o => o = Some x).
  by rewrite /leaked indicator_true // (indicator_false other) (indicator_false (A := None = Some x)) //; lra.
Qed.

(** ** One value per person *)

Variable n : nat.

(** The output: the values of those in [s], which has each person with probability p, independently. *)
Definition shown (x : 'I_n -> X) (s : {ffun 'I_n -> bool}) : 'I_n -> option X := fun i => if s i then Some (x i) else None.

Definition rows_leaked (x : 'I_n -> X) (A : ('I_n -> option X) -> Prop) : R :=
  \sum_s (product (fun _ => coin p01) s * indicator (A (shown x s))).

Definition rows_private (eps delta : R) : Prop :=
  forall x y : 'I_n -> X, (exists j, forall i, i != j -> x i = y i) ->
  forall A, rows_leaked x A <= exp eps * rows_leaked y A + delta.

Lemma one_shown j : Pr (product (fun _ : 'I_n => coin p01)) [set s : {ffun 'I_n -> bool} | s j] = p.
Proof.
  have := product_box (fun _ : 'I_n => coin p01) (fun i => if i == j then [set true] else setT).
  have -> : [set s : {ffun 'I_n -> bool} | [forall i, s i \in (if i == j then [set true] else setT)]] =
            [set s : {ffun 'I_n -> bool} | s j].
    apply/setP => s; rewrite !inE; apply/forallP/idP => [/(_ j) | sj i]; first by rewrite eqxx inE => /eqP.
    by case: eqP => [-> | _]; rewrite !inE ?sj.
  move=> ->; rewrite (bigD1 j) //= eqxx Pr_set1 big1 => [|i /negbTE ->]; last exact: Pr_setT.
  by rewrite Rmult_1_r.
Qed.

Theorem leak_rows eps : 0 <= eps -> rows_private eps p.
Proof.
  move=> eps0 x y [j same] A; have e1 : 1 <= exp eps by rewrite -exp_0; apply: exp_le.
  apply: (Rle_trans _ (rows_leaked y A + p)); last first.
    have : 0 <= rows_leaked y A; last nra.
    by apply: sum_ge0 => s _; apply: Rmult_le_pos; [apply: mass_ge0 | case: (indicator_01 (A (shown y s)))].
  rewrite -[X in _ + X](one_shown j) Pr_as_sum /rows_leaked -sum_add; apply: sum_le => s _.
  have w0 := mass_ge0 (product (fun _ : 'I_n => coin p01)) s.
  rewrite inE -Rmult_plus_distr_l; apply: Rmult_le_compat_l => //.
  have := indicator_01 (A (shown x s)); have := indicator_01 (A (shown y s)); case sj : (s j); first lra.
  suff -> : shown x s = shown y s by lra.
  apply: FunctionalExtensionality.functional_extensionality => i; rewrite /shown; case: (eqVneq i j) => [-> | /same -> //].
  by rewrite sj.
Qed.
End Leak.
