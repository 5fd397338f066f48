(** * Copying and coin flips: claims as published *)

From Dpassay Require Import Certificate.

(** ** copy: refuted. a control of Habernal, How reparametrization trick broke differentially-private text
    representation learning, ACL 2022, section 5

    encode | decode
    dim 32, neighbours any, epsilon 10.0 *)

Module copy.
Definition first : index 32 := Ordinal (ltac:(apply/ltP; lia) : (0 < Z.to_nat 32)%nat).

Theorem verdict : ~ fixed_private (fun x : index 32 -> R => x) 10 0 (both (fun _ => True)).
Proof.
  apply: (no_noise_refuted (x := fun _ => 1) (y := fun _ => 0)); [split; by [] | | number].
  by move=> /(congr1 (fun v => v first)) /=; lra.
Qed.
End copy.

(** ** coin-flip: proven. a control of Habernal, How reparametrization trick broke differentially-private text
    representation learning, ACL 2022, section 5

    category(2) | flip(1/2)
    dim 1, neighbours any, epsilon 0.0 *)

Module coin_flip.
Lemma two : (1 < #|index 2|)%nat. Proof. count. Qed.
Lemma p01 : 0 <= (1 / 2) <= 1. Proof. split; number. Qed.

Theorem verdict : dp 0 0 any_two (response two p01).
Proof.
  apply: response_proven; number.
Qed.
End coin_flip.
