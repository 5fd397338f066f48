(** * Post-processing, groups, composition: claims as published *)

From Dpassay Require Import Certificate.

(** ** post-processing: proven. Dwork and Roth, The algorithmic foundations of differential privacy, 2014, Proposition
    2.1

    query(l1, 1) | laplace(1/eps) | round | decode
    dim 1, neighbours query, epsilon 1.0 *)

Module post_processing.
Theorem verdict : rounded_private (I := index 1) 1 1 (l1_near 1).
Proof.
  rewrite rounded_same; [eapply proven_by; [by apply: exact_for_l1_query; side | number] | number].
Qed.
End post_processing.

(** ** group: proven. Dwork and Roth, The algorithmic foundations of differential privacy, 2014, Theorem 2.2 and its
    remark on delta; exact here for Gaussian noise

    query(l2, k) | gaussian(sigma)
    k 3.0, e 0.5, d 0.000001, sigma 8.057618480725045, dim 1, neighbours query, epsilon 1.5, delta 8.15484548537713570608086241405798749327174136e-6 *)

Module group.
Theorem verdict : gaussian_private (1611523696145009 / 200000000000000) (3 / 2) (101935568567214196326010780175724843665896767 / 12500000000000000000000000000000000000000000000000) 3.
Proof.
  apply: (@gaussian_proven _ _ _ _ _ (65327 / 500) (15419 / 250000000) (61539 / 5000000000) (819 / 1000000000)); gaussian_number.
Qed.
End group.

(** ** composition: proven. Dwork and Roth, The algorithmic foundations of differential privacy, 2014, Theorem 3.16

    query(l1, 1) | repeat(k) | laplace(k/eps)
    k 10.0, dim 1, neighbours query, epsilon 1.0 *)

Module composition.
Theorem verdict : laplace_private (I := [finType of index 10 * index 1]) 10 1 (copies (T := Z.to_nat 10) (l1_near 1)).
Proof.
  eapply proven_by; [by apply: exact_copies; [number | count | by apply: exact_for_l1_query; side] | number].
Qed.

Theorem epsilon : true_epsilon (I := [finType of index 10 * index 1]) 10 (copies (T := Z.to_nat 10) (l1_near 1))
  (999999999999 / 1000000000000)
  1.
Proof.
  eexists; split; [by apply: exact_copies; [number | count | by apply: exact_for_l1_query; side] | split; number].
Qed.
End composition.

(** ** parallel-counts: proven. McSherry, Privacy integrated queries, SIGMOD 2009, Theorem 4

    counts(l1, 1) | laplace(1/eps)
    dim 768, neighbours add-remove-record, epsilon 1.0 *)

Module parallel_counts.
Theorem verdict : laplace_private (I := index 768) 1 1 (counts_near 1).
Proof.
  eapply proven_by; [by apply: (@exact_for_counts _ _ _ 1); [number | count | lia | split; number] | number].
Qed.

Theorem epsilon : true_epsilon (I := index 768) 1 (counts_near 1)
  (999999999999 / 1000000000000)
  1.
Proof.
  eexists; split; [by apply: (@exact_for_counts _ _ _ 1); [number | count | lia | split; number] | split; number].
Qed.
End parallel_counts.

(** ** parallel-vector: refuted. the argument that Lai et al., User-entity differential privacy in learning natural
    language models, 2022, appendix refutes for the k elements of one embedding

    clamp(0, 1) | laplace(1/eps)
    dim 768, neighbours any, epsilon 1.0 *)

Module parallel_vector.
Theorem verdict : ~ laplace_private (I := index 768) 1 1 (both (in_cube 0 1)).
Proof.
  eapply refuted_by; [by apply: exact_on_cube; side | number].
Qed.

Theorem epsilon : true_epsilon (I := index 768) 1 (both (in_cube 0 1))
  (767999999999999 / 1000000000000)
  768.
Proof.
  eexists; split; [by apply: exact_on_cube; side | split; number].
Qed.
End parallel_vector.

(** ** vector-composition: proven. Dwork and Roth, The algorithmic foundations of differential privacy, 2014, Theorem
    3.16, as Lai et al., User-entity differential privacy in learning natural language models, 2022, appendix
    applies it

    clamp(0, 1) | laplace(dim/eps)
    dim 768, neighbours any, epsilon 1.0 *)

Module vector_composition.
Theorem verdict : laplace_private (I := index 768) 768 1 (both (in_cube 0 1)).
Proof.
  eapply proven_by; [by apply: exact_on_cube; side | number].
Qed.

Theorem epsilon : true_epsilon (I := index 768) 768 (both (in_cube 0 1))
  (999999999999 / 1000000000000)
  1.
Proof.
  eexists; split; [by apply: exact_on_cube; side | split; number].
Qed.
End vector_composition.
