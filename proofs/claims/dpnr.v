(** * DPNR: claims as published *)

From Dpassay Require Import Certificate.

(** ** dpnr: refuted. Lyu, He and Li, Differentially private representation for NLP (DPNR), Findings of EMNLP 2020,
    Theorem 1

    encode | minmax | laplace(1/eps)
    dim 768, neighbours word, epsilon 0.05 *)

Module dpnr.
Theorem verdict : ~ laplace_private (I := index 768) 20 (1 / 20) (both (@minmax (index 768))).
Proof.
  eapply refuted_by; [by apply: exact_on_minmax; side | number].
Qed.

Theorem epsilon : true_epsilon (I := index 768) 20 (both (@minmax (index 768)))
  (38399999999999 / 1000000000000)
  (38400000000001 / 1000000000000).
Proof.
  eexists; split; [by apply: exact_on_minmax; side | split; number].
Qed.
End dpnr.

(** ** dpnr-dropout: refuted. Lyu, He and Li, Differentially private representation for NLP (DPNR), Findings of EMNLP
    2020, Theorem 2

    dropout(mu) | encode | minmax | laplace(1/e)
    mu 0.5, e 0.05, dim 768, neighbours word, epsilon 0.0253124674533409847346543533069121141598674187 *)

Module dpnr_dropout.
Theorem verdict : ~ dropped_private (I := index 768) 20 (1 / 2) (253124674533409847346543533069121141598674187 / 10000000000000000000000000000000000000000000000) (@minmax (index 768)).
Proof.
  rewrite dropped_on_minmax; [| number | split; number | count].
  rewrite /amplified; sizes; apply: Rlt_not_le; number.
Qed.
End dpnr_dropout.

(** ** dpnr-element: refuted. the authors' later reading of Lyu, He and Li, Differentially private representation for
    NLP (DPNR), Findings of EMNLP 2020, as reported in Lai et al., User-entity differential privacy in learning
    natural language models, 2022, appendix

    encode | minmax | laplace(1/eps)
    dim 768, neighbours word, epsilon 0.05 *)

Module dpnr_element.
Theorem verdict : ~ laplace_private (I := index 768) 20 (1 / 20) (both (@minmax (index 768))).
Proof.
  eapply refuted_by; [by apply: exact_on_minmax; side | number].
Qed.

Theorem epsilon : true_epsilon (I := index 768) 20 (both (@minmax (index 768)))
  (38399999999999 / 1000000000000)
  (38400000000001 / 1000000000000).
Proof.
  eexists; split; [by apply: exact_on_minmax; side | split; number].
Qed.
End dpnr_element.

(** ** dpnr-element-rows: proven. the condition for element-level DP that Lai et al., User-entity differential privacy
    in learning natural language models, 2022, appendix states

    rows | clamp(0, 1) | laplace(1/eps)
    dim 768, neighbours element, epsilon 0.05 *)

Module dpnr_element_rows.
Theorem verdict : laplace_private (I := index 768) 20 (1 / 20) (rows 0 1).
Proof.
  eapply proven_by; [by apply: exact_rows; side | number].
Qed.

Theorem epsilon : true_epsilon (I := index 768) 20 (rows 0 1)
  (49999999999 / 1000000000000)
  (1 / 20).
Proof.
  eexists; split; [by apply: exact_rows; side | split; number].
Qed.
End dpnr_element_rows.

(** ** dpnr-training: refuted. the training loop of Lyu, He and Li, Differentially private representation for NLP
    (DPNR), Findings of EMNLP 2020, as described in Lai et al., User-entity differential privacy in learning natural
    language models, 2022, appendix

    encode | minmax | repeat(T) | laplace(1/eps)
    T 100.0, dim 768, neighbours word, epsilon 0.05 *)

Module dpnr_training.
Theorem verdict : ~ laplace_private (I := [finType of index 100 * index 768]) 20 (1 / 20) (copies (T := Z.to_nat 100) (both (@minmax (index 768)))).
Proof.
  eapply refuted_by; [by apply: exact_copies; [number | count | by apply: exact_on_minmax; side] | number].
Qed.

Theorem epsilon : true_epsilon (I := [finType of index 100 * index 768]) 20 (copies (T := Z.to_nat 100) (both (@minmax (index 768))))
  (3839999999999999 / 1000000000000)
  3840.
Proof.
  eexists; split; [by apply: exact_copies; [number | count | by apply: exact_on_minmax; side] | split; number].
Qed.
End dpnr_training.

(** ** dpnr-scaled: proven. what Lai et al., User-entity differential privacy in learning natural language models,
    2022, appendix implies: noise scaled to all k elements, in all T steps

    encode | minmax | repeat(T) | laplace(T*dim/eps)
    T 1.0, dim 768, neighbours word, epsilon 0.05 *)

Module dpnr_scaled.
Theorem verdict : laplace_private (I := [finType of index 1 * index 768]) 15360 (1 / 20) (copies (T := Z.to_nat 1) (both (@minmax (index 768)))).
Proof.
  eapply proven_by; [by apply: exact_copies; [number | count | by apply: exact_on_minmax; side] | number].
Qed.

Theorem epsilon : true_epsilon (I := [finType of index 1 * index 768]) 15360 (copies (T := Z.to_nat 1) (both (@minmax (index 768))))
  (49999999999 / 1000000000000)
  (1 / 20).
Proof.
  eexists; split; [by apply: exact_copies; [number | count | by apply: exact_on_minmax; side] | split; number].
Qed.
End dpnr_scaled.

(** ** dpnr-corrected: proven. Lai et al., User-entity differential privacy in learning natural language models, 2022,
    appendix, Theorem 1

    encode | minmax | laplace(1/e)
    e 0.05, dim 768, neighbours word, epsilon 38.4 *)

Module dpnr_corrected.
Theorem verdict : laplace_private (I := index 768) 20 (192 / 5) (both (@minmax (index 768))).
Proof.
  eapply proven_by; [by apply: exact_on_minmax; side | number].
Qed.

Theorem epsilon : true_epsilon (I := index 768) 20 (both (@minmax (index 768)))
  (38399999999999 / 1000000000000)
  (192 / 5).
Proof.
  eexists; split; [by apply: exact_on_minmax; side | split; number].
Qed.
End dpnr_corrected.

(** ** dpnr-dropout-fixed: proven. Lai et al., User-entity differential privacy in learning natural language models,
    2022, appendix, Theorem 2

    dropout(mu) | encode | minmax | laplace(1/e)
    mu 0.5, e 0.05, dim 768, neighbours word, epsilon 37.7068528194400547116250042553180247363173166 *)

Module dpnr_dropout_fixed.
Theorem verdict : dropped_private (I := index 768) 20 (1 / 2) (188534264097200273558125021276590123681586583 / 5000000000000000000000000000000000000000000) (@minmax (index 768)).
Proof.
  rewrite dropped_on_minmax; [| number | split; number | count].
  rewrite /amplified; number.
Qed.
End dpnr_dropout_fixed.
