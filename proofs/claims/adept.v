(** * ADePT: claims as published *)

From Dpassay Require Import Certificate.

(** ** adept: refuted. Krishna, Gupta and Dupuy, ADePT: Auto-encoder based differentially private text transformation,
    EACL 2021; restated as Theorem 3.1 in Habernal, When differential privacy meets NLP: The devil is in the detail,
    EMNLP 2021

    encode | clip(l2, C) | laplace(2*C/eps) | decode
    C 1.0, dim 32, neighbours any, epsilon 1.0 *)

Module adept.
Theorem verdict : ~ laplace_private (I := index 32) 2 1 (both (in_l2 1)).
Proof.
  eapply refuted_by; [by apply: exact_on_l2; side | number].
Qed.

Theorem epsilon : true_epsilon (I := index 32) 2 (both (in_l2 1))
  (1414213562373 / 250000000000)
  (5656854249493 / 1000000000000).
Proof.
  eexists; split; [by apply: exact_on_l2; side | split; number].
Qed.
End adept.

(** ** adept-unclipped: refuted. Habernal, How reparametrization trick broke differentially-private text representation
    learning, ACL 2022, section 5; its released code draws the noise but does not clip

    clamp(0, 1) | laplace(1/eps)
    dim 32, neighbours any, epsilon 1.0 *)

Module adept_unclipped.
Theorem verdict : ~ laplace_private (I := index 32) 1 1 (both (in_cube 0 1)).
Proof.
  eapply refuted_by; [by apply: exact_on_cube; side | number].
Qed.

Theorem epsilon : true_epsilon (I := index 32) 1 (both (in_cube 0 1))
  (31999999999999 / 1000000000000)
  32.
Proof.
  eexists; split; [by apply: exact_on_cube; side | split; number].
Qed.
End adept_unclipped.

(** ** adept-l1: proven. Habernal, When differential privacy meets NLP: The devil is in the detail, EMNLP 2021, section
    7

    encode | clip(l1, C) | laplace(2*C/eps) | decode
    C 1.0, dim 32, neighbours any, epsilon 1.0 *)

Module adept_l1.
Theorem verdict : laplace_private (I := index 32) 2 1 (both (in_l1 1)).
Proof.
  eapply proven_by; [by apply: exact_on_l1; side | number].
Qed.

Theorem epsilon : true_epsilon (I := index 32) 2 (both (in_l1 1))
  (999999999999 / 1000000000000)
  1.
Proof.
  eexists; split; [by apply: exact_on_l1; side | split; number].
Qed.
End adept_l1.

(** ** adept-sqrt-n: proven. Habernal, When differential privacy meets NLP: The devil is in the detail, EMNLP 2021,
    Theorem 5.1

    encode | clip(l2, C) | laplace(2*C*sqrt(dim)/eps) | decode
    C 1.0, dim 32, neighbours any, epsilon 1.0 *)

Module adept_sqrt_n.
Theorem verdict : laplace_private (I := index 32) ((2 * (sqrt 32)) / 1) 1 (both (in_l2 1)).
Proof.
  eapply proven_by; [by apply: exact_on_l2; side | number].
Qed.

Theorem epsilon : true_epsilon (I := index 32) ((2 * (sqrt 32)) / 1) (both (in_l2 1))
  (999999999999 / 1000000000000)
  1.
Proof.
  eexists; split; [by apply: exact_on_l2; side | split; number].
Qed.
End adept_sqrt_n.
