<?php
// Waits in the middle of a request, until the client has sent its body.



function other_page()
{
    return other_query(1);
}

function other_query($id)
{
    return file_get_contents('php://input');
}

echo strlen(other_page());
$asked = $_SERVER['REQUEST_URI'];
