(** * DP-Prompt, DP-Paraphrase and DP-MLM: claims as published *)

From Dpassay Require Import Certificate.

(** ** dp-prompt: proven. Utpala, Hooker and Chen, Locally differentially private document generation using zero shot
    prompting, Findings of EMNLP 2023

    encode | clamp(b1, b2) | softmax(T) | times(n)
    b1 -5.0, b2 5.0, T 1.0, n 100.0, dim 32128, neighbours any, epsilon 2000.0 *)

Module dp_prompt.
Lemma some : (0 < #|index 32128|)%nat. Proof. count. Qed.

Theorem verdict : times_private (cube_near (- 5) 10) (exponential some 1) (Z.to_nat 100) 2000 0.
Proof.
  apply: (times_proven (e := 20)); [count | number |].
  apply: cube_proven; number.
Qed.
End dp_prompt.

(** ** dp-prompt-unclipped: refuted. Utpala, Hooker and Chen, Locally differentially private document generation using
    zero shot prompting, Findings of EMNLP 2023; opensource_paraphrase_generation.py of its repository, where
    generate gets a temperature, top_k=0 and no limits of logits

    encode | softmax(1) | times(100)
    dim 32128, neighbours any, epsilon 2000.0 *)

Module dp_prompt_unclipped.
Lemma some : (0 < #|index 32128|)%nat. Proof. count. Qed.

Theorem verdict : ~ times_private any_two (exponential some 1) (Z.to_nat 100) 2000 0.
Proof.
  apply: (times_refuted (e := 20)); [count | number |].
  apply: exponential_unbounded; side.
Qed.
End dp_prompt_unclipped.

(** ** dp-paraphrase: proven. Mattern, Weggenmann and Kerschbaum, The limits of word level differential privacy,
    Findings of NAACL 2022

    encode | clamp(b1, b2) | softmax(T) | times(n)
    b1 -5.0, b2 5.0, T 1.0, n 100.0, dim 50257, neighbours any, epsilon 2000.0 *)

Module dp_paraphrase.
Lemma some : (0 < #|index 50257|)%nat. Proof. count. Qed.

Theorem verdict : times_private (cube_near (- 5) 10) (exponential some 1) (Z.to_nat 100) 2000 0.
Proof.
  apply: (times_proven (e := 20)); [count | number |].
  apply: cube_proven; number.
Qed.
End dp_paraphrase.

(** ** dp-paraphrase-top-k: refuted. Mattern, Weggenmann and Kerschbaum, The limits of word level differential privacy,
    Findings of NAACL 2022; its re-implementation in LLMDP.py of the DP-MLM repository samples by a text-generation
    pipeline without top_k, whose default is 50

    encode | clamp(b1, b2) | topk(k) | softmax(T) | times(n)
    b1 -5.0, b2 5.0, T 1.0, n 100.0, k 50.0, dim 50257, neighbours any, epsilon 2000.0 *)

Module dp_paraphrase_top_k.
Lemma some : (0 < Z.to_nat 50)%nat. Proof. count. Qed.

Theorem verdict : forall (top : (index 50257 -> R) -> {set index 50257}) (rule : top_rule (Z.to_nat 50) top),
  ~ times_private (cube_near (- 5) 10) (top_choice 1 some rule) (Z.to_nat 100) 2000 0.
Proof.
  move=> top rule; apply: (times_refuted (e := 20)); [count | number | apply: top_refuted; [by rewrite card_ord; apply/ltP; lia | number]].
Qed.
End dp_paraphrase_top_k.

(** ** dp-mlm: proven. Meisenbacher, Chevli, Vladika and Matthes, DP-MLM: Differentially private text rewriting using
    masked language models, Findings of ACL 2024; the limits of DPMLM.py in its repository, for RoBERTa

    encode | clamp(b1, b2) | softmax(2*(b2 - b1)/eps)
    b1 -3.2093127, b2 16.304797887802124, dim 50265, neighbours any, epsilon 100.0 *)

Module dp_mlm.
Lemma some : (0 < #|index 50265|)%nat. Proof. count. Qed.

Theorem verdict : dp 100 0 (cube_near (- 32093127 / 10000000) (4878527646950531 / 250000000000000)) (exponential some (12500000000000000 / 4878527646950531)).
Proof.
  apply: cube_proven; number.
Qed.
End dp_mlm.
