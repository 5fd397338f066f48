(** * Average document length: claims as published *)

From Dpassay Require Import Certificate.

(** ** average-length: proven. the example of Habernal, When differential privacy meets NLP: The devil is in the
    detail, EMNLP 2021, section 2, for documents of at most 46 words

    clamp(0, 46) | laplace(46/eps)
    dim 1, neighbours replace-record, epsilon 1.0 *)

Module average_length.
Theorem verdict : laplace_private (I := index 1) 46 1 (record_replaced (in_cube 0 46)).
Proof.
  eapply proven_by; [by apply: exact_replaced; [number | by apply: exact_on_cube; side] | number].
Qed.

Theorem epsilon : true_epsilon (I := index 1) 46 (record_replaced (in_cube 0 46))
  (999999999999 / 1000000000000)
  1.
Proof.
  eexists; split; [by apply: exact_replaced; [number | by apply: exact_on_cube; side] | split; number].
Qed.
End average_length.

(** ** average-length-raw: refuted. the attack of Habernal, When differential privacy meets NLP: The devil is in the
    detail, EMNLP 2021, section 2

    clamp(0, 46)
    dim 1, neighbours replace-record, epsilon 1.0 *)

Module average_length_raw.
Definition first : index 1 := Ordinal (ltac:(apply/ltP; lia) : (0 < Z.to_nat 1)%nat).

Theorem verdict : ~ fixed_private (fun x : index 1 -> R => x) 1 0 (record_replaced (in_cube (I := index 1) 0 46)).
Proof.
  apply: (no_noise_refuted (x := fun _ => 46) (y := fun _ => 0)); [exists (fun _ => 0), (fun _ => 46), (fun _ => 0); do 2!(split; first by move=> i; lra); by split=> i; lra | | number].
  by move=> /(congr1 (fun v => v first)) /=; lra.
Qed.
End average_length_raw.
