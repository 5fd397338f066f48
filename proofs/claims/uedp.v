(** * UeDP: claims as published *)

From Dpassay Require Import Certificate.

(** ** uedp-released: refuted. Lai, Phan, Sun, Jain, Dernoncourt, Gu and Barmpalios, User-entity differential privacy
    in learning natural language models, IEEE Big Data 2022; main_lm_conll_UeDP.py of its repository, entities of
    type person, whose last number of rounds, 4,280, is that of epsilon 3

    query(l2, m*lr*c/sqrt(2)) | gaussian((z*(m + 1)*c)^2/W)
    m 100.0, lr 20000.0, c 0.1, z 2.0, W 1183700.0, dim 1, neighbours user-entity, epsilon 3.0, delta 0.00001 *)

Module uedp_released.
Theorem verdict : ~ gaussian_private (10201 / 29592500) 3 (1 / 100000) (200000 / (sqrt 2)).
Proof.
  apply: (@gaussian_far _ _ _ _ _ (20683 / 5000000) 1002 (1 / 2)); gaussian_number.
Qed.
End uedp_released.
