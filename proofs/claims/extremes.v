(** * The two extremes of delta: claims as published *)

From Dpassay Require Import Certificate.

(** ** leak-everything: proven. Habernal, Privacy-preserving NLP, lecture on approximate differential privacy,
    algorithm 1

    category(1000000) | leak(delta)
    dim 1, neighbours any, epsilon 0.0, delta 0.000001 *)

Module leak_everything.
Lemma p01 : 0 <= (1 / 1000000) <= 1. Proof. split; number. Qed.

Theorem verdict : leak_private (X := index 1000000) (1 / 1000000) 0 (1 / 1000000) any_two.
Proof.
  apply: leak_upper; [exact: p01 | number | number].
Qed.
End leak_everything.

(** ** leak-rows: proven. Habernal, Privacy-preserving NLP, lecture on approximate differential privacy, algorithm 2

    rows | leak(delta)
    dim 1000000, neighbours replace-record, epsilon 0.0, delta 0.000001 *)

Module leak_rows.
Lemma p01 : 0 <= (1 / 1000000) <= 1. Proof. split; number. Qed.

Theorem verdict : @rows_private R _ p01 (Z.to_nat 1000000) 0 (1 / 1000000).
Proof.
  apply: rows_proven; number.
Qed.
End leak_rows.
