(** * Hash-based local privacy: claims as published *)

From Dpassay Require Import Certificate.

(** ** rappor: proven. Erlingsson, Pihur and Korolova, RAPPOR, CCS 2014, Theorem 1

    bloom(k, h) | flip(1-f/2)
    k 128.0, h 2.0, f 0.5, dim 1, neighbours any, epsilon 4.39444915467243876558098094769010281858996227 *)

Module rappor.
Lemma p01 : 0 < (3 / 4) < 1. Proof. split; number. Qed.
Lemma q01 : 0 < 1 - (3 / 4) < 1. Proof. split; number. Qed.

Theorem verdict : bloom_private (Z.to_nat 128) (Z.to_nat 2) p01 q01 (439444915467243876558098094769010281858996227 / 100000000000000000000000000000000000000000000).
Proof.
  apply: (@bloom_proven _ _ _ _ _ 4 _ _ _ _ (439444915467243876558098094769010281858996227 / 400000000000000000000000000000000000000000000)); [lia | lia | lia | number | number | number].
Qed.
End rappor.

(** ** one-bit: proven. Bassily and Smith, Local, private, efficient protocols for succinct histograms, STOC 2015

    hash(2) | flip(exp(eps)/(1 + exp(eps)))
    dim 1, neighbours any, epsilon 1.0 *)

Module one_bit.
Lemma two : (1 < #|index 2|)%nat. Proof. count. Qed.
Lemma p01 : 0 <= ((exp 1) / (1 + (exp 1))) <= 1. Proof. split; number. Qed.

Theorem verdict : hashed_private (response two p01) 1 0.
Proof.
  rewrite hashed_exact.
  apply: response_proven; number.
Qed.
End one_bit.

(** ** local-hashing: proven. Wang, Blocki, Li and Jha, Locally differentially private protocols for frequency
    estimation, USENIX Sec. 2017; g is near e^eps + 1

    hash(g) | flip(exp(eps)/(exp(eps) + g - 1))
    g 4.0, dim 1, neighbours any, epsilon 1.0 *)

Module local_hashing.
Lemma two : (1 < #|index 4|)%nat. Proof. count. Qed.
Lemma p01 : 0 <= ((exp 1) / (((exp 1) + 4) - 1)) <= 1. Proof. split; number. Qed.

Theorem verdict : hashed_private (response two p01) 1 0.
Proof.
  rewrite hashed_exact.
  apply: response_proven; number.
Qed.
End local_hashing.

(** ** sue: proven. Wang, Blocki, Li and Jha, Locally differentially private protocols for frequency estimation, USENIX
    Sec. 2017 (basic RAPPOR)

    onehot(k) | flip(exp(eps/2)/(1 + exp(eps/2)))
    k 100.0, dim 1, neighbours any, epsilon 1.0 *)

Module sue.
Lemma p01 : 0 < ((exp (1 / 2)) / (1 + (exp (1 / 2)))) < 1. Proof. split; number. Qed.
Lemma q01 : 0 < (1 - ((exp (1 / 2)) / (1 + (exp (1 / 2))))) < 1. Proof. split; number. Qed.

Theorem verdict : dp 1 0 any_two (fun j => equal_bits p01 q01 (@one_hot (Z.to_nat 100) j)).
Proof.
  apply: (@one_hot_proven _ _ _ _ _ _ (1 / 2) (1 / 2)); side.
Qed.
End sue.

(** ** oue: proven. Wang, Blocki, Li and Jha, Locally differentially private protocols for frequency estimation, USENIX
    Sec. 2017

    onehot(k) | bits(1/2, 1/2, 1/(1 + exp(eps)))
    k 100.0, dim 1, neighbours any, epsilon 1.0 *)

Module oue.
Lemma p01 : 0 < (1 / 2) < 1. Proof. split; number. Qed.
Lemma q01 : 0 < (1 / (1 + (exp 1))) < 1. Proof. split; number. Qed.

Theorem verdict : dp 1 0 any_two (fun j => equal_bits p01 q01 (@one_hot (Z.to_nat 100) j)).
Proof.
  rewrite one_hot_odds; [number | side | number | number].
Qed.
End oue.
