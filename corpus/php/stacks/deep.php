<?php
// A stack of a hundred thousand frames and one.
function down($n)
{
    if ($n > 0) {
        return down($n - 1);
    }
    fwrite(STDOUT, "= deep\n.\n");
    return fgets(STDIN);
}
down(99998);
