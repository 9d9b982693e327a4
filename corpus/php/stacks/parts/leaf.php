<?php

point($GLOBALS['note']);
return 1;
