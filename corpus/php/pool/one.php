<?php
// Waits in the middle of a request, until the client has sent its body.
function first_page()
{
    return first_query(1);
}

function first_query($id)
{
    return file_get_contents('php://input');
}

echo strlen(first_page());
$asked = $_SERVER['REQUEST_URI'];
