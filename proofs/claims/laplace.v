(** * Laplace mechanism: claims as published *)

From Dpassay Require Import Certificate.

(** ** laplace: proven. Dwork and Roth, The algorithmic foundations of differential privacy, 2014, Theorem 3.6

    query(l1, 1) | laplace(1/eps)
    dim 1, neighbours query, epsilon 1.0 *)

Module laplace.
Theorem verdict : laplace_private (I := index 1) 1 1 (l1_near 1).
Proof.
  eapply proven_by; [by apply: exact_for_l1_query; side | number].
Qed.

Theorem epsilon : true_epsilon (I := index 1) 1 (l1_near 1)
  (999999999999 / 1000000000000)
  1.
Proof.
  eexists; split; [by apply: exact_for_l1_query; side | split; number].
Qed.
End laplace.

(** ** laplace-vector: proven. Dwork and Roth, The algorithmic foundations of differential privacy, 2014, Theorem 3.6

    query(l1, D) | laplace(D/eps)
    D 2.0, dim 32, neighbours query, epsilon 1.0 *)

Module laplace_vector.
Theorem verdict : laplace_private (I := index 32) 2 1 (l1_near 2).
Proof.
  eapply proven_by; [by apply: exact_for_l1_query; side | number].
Qed.

Theorem epsilon : true_epsilon (I := index 32) 2 (l1_near 2)
  (999999999999 / 1000000000000)
  1.
Proof.
  eexists; split; [by apply: exact_for_l1_query; side | split; number].
Qed.
End laplace_vector.
