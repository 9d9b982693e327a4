<?php
return function () {
    point($GLOBALS['note']);
};
