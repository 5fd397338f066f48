(** * Binary encoding: claims as published *)

From Dpassay Require Import Certificate.

(** ** binary-symmetric: proven. symmetric randomized response on every bit, as in Lyu, Li, He and Xiao, Towards
    differentially private text representations, SIGIR 2020

    encode | binary(m, n) | flip(exp(eps/(dim*(1+m+n))) / (1 + exp(eps/(dim*(1+m+n)))))
    m 4.0, n 5.0, dim 768, neighbours any, epsilon 1.0 *)

Module binary_symmetric.
Lemma even01 : 0 < ((exp (1 / 7680)) / (1 + (exp (1 / 7680)))) < 1. Proof. split; number. Qed.
Lemma odd01 : 0 < ((exp (1 / 7680)) / (1 + (exp (1 / 7680)))) < 1. Proof. split; number. Qed.
Lemma q01 : 0 < (1 - ((exp (1 / 7680)) / (1 + (exp (1 / 7680))))) < 1. Proof. split; number. Qed.

Theorem verdict : dp 1 0 any_two (parity_bits even01 odd01 q01 (n := Z.to_nat 7680)).
Proof.
  apply: (@parity_proven _ _ _ _ _ _ 7680 3840 3840 _ _ _ _ (1 / 7680) (1 / 7680)); [lia | lia | lia | by apply: (cost_le even01 q01); number | by apply: (cost_le odd01 q01); number | number].
Qed.
End binary_symmetric.

(** ** ome: refuted. Lyu, Li, He and Xiao, Towards differentially private text representations, SIGIR 2020, released
    code

    encode | binary(m, n) | bits(L/(1+L), 1/(1+L^3), 1/(1+L*exp(eps/(dim*(1+m+n)))))
    m 4.0, n 5.0, L 100.0, dim 768, neighbours any, epsilon 1.0 *)

Module ome.
Lemma even01 : 0 < (100 / 101) < 1. Proof. split; number. Qed.
Lemma odd01 : 0 < (1 / 1000001) < 1. Proof. split; number. Qed.
Lemma q01 : 0 < (1 / (1 + (100 * (exp (1 / 7680))))) < 1. Proof. split; number. Qed.

Theorem verdict : ~ dp 1 0 any_two (parity_bits even01 odd01 q01 (n := Z.to_nat 7680)).
Proof.
  eapply (@parity_refuted _ _ _ _ _ _ 7680 3840 3840); [lia | lia | lia | exact: cost_ge_fall1 | exact: cost_ge_rise1 | number].
Qed.
End ome.

(** ** ome-1: proven. Lyu, Li, He and Xiao, Towards differentially private text representations, SIGIR 2020, released
    code

    encode | binary(m, n) | bits(L/(1+L), 1/(1+L^3), 1/(1+L*exp(eps/(dim*(1+m+n)))))
    m 4.0, n 5.0, L 1.0, dim 768, neighbours any, epsilon 1.0 *)

Module ome_1.
Lemma even01 : 0 < (1 / 2) < 1. Proof. split; number. Qed.
Lemma odd01 : 0 < (1 / 2) < 1. Proof. split; number. Qed.
Lemma q01 : 0 < (1 / (1 + (1 * (exp (1 / 7680))))) < 1. Proof. split; number. Qed.

Theorem verdict : dp 1 0 any_two (parity_bits even01 odd01 q01 (n := Z.to_nat 7680)).
Proof.
  apply: (@parity_proven _ _ _ _ _ _ 7680 3840 3840 _ _ _ _ (1 / 7680) (1 / 7680)); [lia | lia | lia | by apply: (cost_le even01 q01); number | by apply: (cost_le odd01 q01); number | number].
Qed.
End ome_1.

(** ** latent-moue: proven. Chamikara et al., Local differential privacy for deep learning (LATENT), 2019, modified
    optimized unary encoding

    encode | binary(m, n) | bits(1/(1+a), 1/(1+a), 1/(1+a*exp(eps/(dim*(1+m+n)))))
    m 4.0, n 5.0, a 100.0, dim 768, neighbours any, epsilon 1.0 *)

Module latent_moue.
Lemma even01 : 0 < (1 / 101) < 1. Proof. split; number. Qed.
Lemma odd01 : 0 < (1 / 101) < 1. Proof. split; number. Qed.
Lemma q01 : 0 < (1 / (1 + (100 * (exp (1 / 7680))))) < 1. Proof. split; number. Qed.

Theorem verdict : dp 1 0 any_two (parity_bits even01 odd01 q01 (n := Z.to_nat 7680)).
Proof.
  apply: (@parity_proven _ _ _ _ _ _ 7680 3840 3840 _ _ _ _ (1 / 7680) (1 / 7680)); [lia | lia | lia | by apply: (cost_le even01 q01); number | by apply: (cost_le odd01 q01); number | number].
Qed.
End latent_moue.

(** ** latent-uer: refuted. Chamikara et al., Local differential privacy for deep learning (LATENT), 2019, utility
    enhancing randomization

    encode | binary(m, n) | bits(a/(1+a), 1/(1+a^3), 1/(1+a*exp(eps/(dim*(1+m+n)))))
    m 4.0, n 5.0, a 100.0, dim 768, neighbours any, epsilon 1.0 *)

Module latent_uer.
Lemma even01 : 0 < (100 / 101) < 1. Proof. split; number. Qed.
Lemma odd01 : 0 < (1 / 1000001) < 1. Proof. split; number. Qed.
Lemma q01 : 0 < (1 / (1 + (100 * (exp (1 / 7680))))) < 1. Proof. split; number. Qed.

Theorem verdict : ~ dp 1 0 any_two (parity_bits even01 odd01 q01 (n := Z.to_nat 7680)).
Proof.
  eapply (@parity_refuted _ _ _ _ _ _ 7680 3840 3840); [lia | lia | lia | exact: cost_ge_fall1 | exact: cost_ge_rise1 | number].
Qed.
End latent_uer.
