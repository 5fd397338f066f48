(** * Gaussian mechanism: claims as published *)

From Dpassay Require Import Certificate.

(** ** gaussian: proven. Dwork and Roth, The algorithmic foundations of differential privacy, 2014, Theorem 3.22 (for 0
    < eps < 1)

    query(l2, 1) | gaussian(sqrt(2*ln(1.25/delta))/eps)
    dim 1, neighbours query, epsilon 0.5, delta 0.00001 *)

Module gaussian.
Theorem verdict : gaussian_private ((sqrt (2 * (ln 125000))) / (1 / 2)) (1 / 2) (1 / 100000) 1.
Proof.
  apply: (@gaussian_near _ _ _ _ _ (5743 / 500)); gaussian_number.
Qed.
End gaussian.

(** ** gaussian-large-eps: refuted. Dwork and Roth, The algorithmic foundations of differential privacy, 2014, Theorem
    3.22 (for 0 < eps < 1), used beyond it

    query(l2, 1) | gaussian(sqrt(2*ln(1.25/delta))/eps)
    dim 1, neighbours query, epsilon 10.0, delta 0.00001 *)

Module gaussian_large_eps.
Theorem verdict : ~ gaussian_private ((sqrt (2 * (ln 125000))) / 10) 10 (1 / 100000) 1.
Proof.
  apply: (@gaussian_refuted _ _ _ _ (threshold ((sqrt (2 * (ln 125000))) / 10) 10 1) (8661 / 1000) (3277 / 50000000) (4469 / 2000000000000)); gaussian_number.
Qed.
End gaussian_large_eps.

(** ** gaussian-exact: proven. Balle and Wang, Improving the Gaussian mechanism for differential privacy, ICML 2018,
    Theorem 8

    query(l2, 1) | gaussian(sigma)
    sigma 0.49988861970900855, dim 1, neighbours query, epsilon 10.0, delta 0.00001 *)

Module gaussian_exact.
Theorem verdict : gaussian_private (9997772394180171 / 20000000000000000) 10 (1 / 100000) 1.
Proof.
  apply: (@gaussian_proven _ _ _ _ _ (3599 / 400) (3185060005396116073 / 100000000000000000000000) (248003926929496209 / 250000000000000000000000000) (119 / 25000000000000000000000)); gaussian_number.
Qed.
End gaussian_exact.
