(** * Randomized response and the exponential mechanism: claims as published *)

From Dpassay Require Import Certificate.

(** ** randomized-response: proven. Warner, Randomized response, 1965; Dwork and Roth, The algorithmic foundations of
    differential privacy, 2014, section 3.2

    category(2) | flip(exp(eps)/(1 + exp(eps)))
    dim 1, neighbours any, epsilon 1.0 *)

Module randomized_response.
Lemma two : (1 < #|index 2|)%nat. Proof. count. Qed.
Lemma p01 : 0 <= ((exp 1) / (1 + (exp 1))) <= 1. Proof. split; number. Qed.

Theorem verdict : dp 1 0 any_two (response two p01).
Proof.
  apply: response_proven; number.
Qed.
End randomized_response.

(** ** k-ary-response: proven. Kairouz, Bonawitz and Ramage, Discrete distribution estimation under local privacy, ICML
    2016

    category(k) | flip(exp(eps)/(exp(eps) + k - 1))
    k 100.0, dim 1, neighbours any, epsilon 1.0 *)

Module k_ary_response.
Lemma two : (1 < #|index 100|)%nat. Proof. count. Qed.
Lemma p01 : 0 <= ((exp 1) / (((exp 1) + 100) - 1)) <= 1. Proof. split; number. Qed.

Theorem verdict : dp 1 0 any_two (response two p01).
Proof.
  apply: response_proven; number.
Qed.
End k_ary_response.

(** ** exponential: proven. McSherry and Talwar, Mechanism design via differential privacy, 2007; Dwork and Roth, The
    algorithmic foundations of differential privacy, 2014, Theorem 3.10

    query(linf, 1) | exponential(eps/2)
    dim 10, neighbours query, epsilon 1.0 *)

Module exponential.
Lemma some : (0 < #|index 10|)%nat. Proof. count. Qed.

Theorem verdict : dp 1 0 (linf_near 1) (exponential some (1 / 2)).
Proof.
  apply: exponential_linf; side.
Qed.
End exponential.
