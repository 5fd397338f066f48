(** * Word mechanisms: SanText, TEM, CusText, RANTEXT: claims as published *)

From Dpassay Require Import Certificate.

(** ** santext-metric: proven. Yue, Du, Wang, Li, Sun and Chow, Differential privacy for text analytics via natural
    text sanitization, Findings of ACL 2021

    query(linf, d) | softmax(2/e)
    d 1.0, e 1.0, dim 33860, neighbours query, epsilon 1.0 *)

Module santext_metric.
Lemma some : (0 < #|index 33860|)%nat. Proof. count. Qed.

Theorem verdict : dp 1 0 (linf_near 1) (exponential some (1 / 2)).
Proof.
  apply: exponential_linf; side.
Qed.
End santext_metric.

(** ** santext-plus: refuted. Yue, Du, Wang, Li, Sun and Chow, Differential privacy for text analytics via natural text
    sanitization, Findings of ACL 2021; its SanText+ claims less, for words on a list of sensitive ones only

    clamp(0, 1) | leak(1 - p)
    p 0.3, dim 1, neighbours any, epsilon 1.0 *)

Module santext_plus.
Lemma p01 : 0 <= (7 / 10) <= 1. Proof. split; number. Qed.

Theorem verdict : ~ leak_private (X := R) (7 / 10) 1 0 (between 0 1).
Proof.
  apply: leak_refuted; [exact: p01 | number | number | number].
Qed.
End santext_plus.

(** ** tem-metric: proven. Carvalho, Vasiloudis, Feyisetan and Wang, TEM: High utility metric differential privacy on
    text, SIAM International Conference on Data Mining 2023

    query(linf, d) | softmax(2/e)
    d 1.0, e 1.0, dim 33860, neighbours query, epsilon 1.0 *)

Module tem_metric.
Lemma some : (0 < #|index 33860|)%nat. Proof. count. Qed.

Theorem verdict : dp 1 0 (linf_near 1) (exponential some (1 / 2)).
Proof.
  apply: exponential_linf; side.
Qed.
End tem_metric.

(** ** custext-groups: refuted. Chen et al., A customized text sanitization mechanism with differential privacy,
    Findings of ACL 2023

    category(G) | flip(1)
    G 500.0, dim 1, neighbours any, epsilon 1.0 *)

Module custext_groups.
Lemma two : (1 < #|index 500|)%nat. Proof. count. Qed.
Lemma p01 : 0 <= 1 <= 1. Proof. split; number. Qed.

Theorem verdict : ~ dp 1 0 any_two (response two p01).
Proof.
  apply: response_refuted; number.
Qed.
End custext_groups.

(** ** custext-inside: proven. Chen et al., A customized text sanitization mechanism with differential privacy,
    Findings of ACL 2023; between two words of one group

    encode | clamp(0, 1) | exponential(eps/2)
    dim 20, neighbours any, epsilon 1.0 *)

Module custext_inside.
Lemma some : (0 < #|index 20|)%nat. Proof. count. Qed.

Theorem verdict : dp 1 0 (cube_near 0 1) (exponential some (1 / 2)).
Proof.
  apply: cube_proven; number.
Qed.
End custext_inside.

(** ** rantext: refuted. Tong et al., InferDPT: Privacy-preserving inference for black-box large language models, 2023,
    arXiv:2310.12214; the constants are those of func.py in its repository

    category(2) | flip(1 - exp(-a*ln(b*eps - c) - f)/2)
    a 0.01658160142016071, b 19.064721649556482, c 38.1294334077209, f 9.311083811697406, dim 1, neighbours any, epsilon 3.0 *)

Module rantext.
Lemma two : (1 < #|index 2|)%nat. Proof. count. Qed.
Lemma p01 : 0 <= (1 - ((exp (((- 1658160142016071 / 100000000000000000) * (ln (9532365770474273 / 500000000000000))) - (4655541905848703 / 500000000000000))) / 2)) <= 1. Proof. split; number. Qed.

Theorem verdict : ~ dp 3 0 any_two (response two p01).
Proof.
  apply: response_refuted; number.
Qed.
End rantext.
