<?php
// Fills the shared memory of opcache, so that no file that is loaded afterwards finds room in it.
(function () {
    for ($number = 0; !opcache_get_status(false)['cache_full']; $number++) {
        $path = sys_get_temp_dir() . "/fill-$number.php";
        $texts = implode(',', array_map(fn ($text) => "'$number of $text'", range(1, 200 >> ($number > 20))));
        file_put_contents($path, "<?php return [$texts];");
        opcache_compile_file($path);
    }
})();
