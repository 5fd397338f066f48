(** * DPText: claims as published *)

From Dpassay Require Import Certificate.

(** ** dptext-zero: refuted. Beigi et al., I am not what I write: Privacy preserving text representation learning,
    2019, Eq. 9 (also Alnasser et al. 2021, Eq. 3; Beigi et al. 2021, Eq. 14); this reading in Habernal, How
    reparametrization trick broke differentially-private text representation learning, ACL 2022, Theorem 3.2

    encode | clamp(0, 1) | onesided(dim/eps, 1/2) | decode
    dim 1, neighbours any, epsilon 1.0 *)

Module dptext_zero.
Theorem verdict : ~ one_sided_private 1 (1 / 2) 0 1 0 1.
Proof.
  apply: one_sided_no_dp; number.
Qed.
End dptext_zero.

(** ** dptext-resampled: refuted. Beigi et al., I am not what I write: Privacy preserving text representation learning,
    2019, Eq. 9 (also Alnasser et al. 2021, Eq. 3; Beigi et al. 2021, Eq. 14); this reading in Habernal, How
    reparametrization trick broke differentially-private text representation learning, ACL 2022, Theorem 3.2

    encode | clamp(0, 1) | onesided(dim/eps) | decode
    dim 1, neighbours any, epsilon 1.0 *)

Module dptext_resampled.
Theorem verdict : ~ one_sided_private 1 0 0 1 0 1.
Proof.
  apply: one_sided_no_dp; number.
Qed.
End dptext_resampled.

(** ** dptext-nan: refuted. Beigi et al., I am not what I write: Privacy preserving text representation learning, 2019,
    Eq. 9 (also Alnasser et al. 2021, Eq. 3; Beigi et al. 2021, Eq. 14); what numpy does with it

    encode | clamp(0, 1) | onesided(dim/eps, 0, 1/2) | decode
    dim 1, neighbours any, epsilon 1.0 *)

Module dptext_nan.
Theorem verdict : ~ one_sided_private 1 0 (1 / 2) 1 0 1.
Proof.
  apply: one_sided_no_dp; number.
Qed.
End dptext_nan.

(** ** dptext-corrected: proven. Habernal, How reparametrization trick broke differentially-private text representation
    learning, ACL 2022, Eq. 4 and 7

    encode | clamp(0, 1) | laplace(dim/eps) | decode
    dim 1, neighbours any, epsilon 1.0 *)

Module dptext_corrected.
Theorem verdict : laplace_private (I := index 1) 1 1 (both (in_cube 0 1)).
Proof.
  eapply proven_by; [by apply: exact_on_cube; side | number].
Qed.

Theorem epsilon : true_epsilon (I := index 1) 1 (both (in_cube 0 1))
  (999999999999 / 1000000000000)
  1.
Proof.
  eexists; split; [by apply: exact_on_cube; side | split; number].
Qed.
End dptext_corrected.
